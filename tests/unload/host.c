/* host.c - a program without weft that loads, uses and closes a plugin with it.
 *
 *   unload_host PLUGIN
 *
 * The library stays loaded when the plugin is closed.  So threads that have used it can end
 * afterwards, and a plugin that is loaded again finds the library unchanged, with the
 * thread-specific key that it created.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                \
	do {                                                                       \
		if (!(cond)) {                                                     \
			printf("%s:%d: %s is false\n", __FILE__, __LINE__, #cond); \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

enum { CYCLES = 1100 }; /* more than the 1,024 keys of a process */

static const char *path;
static pthread_barrier_t used, closed;

static int
use(void *plugin)
{
	int (*fn)(void);

	*(void **)&fn = dlsym(plugin, "plugin_use");
	CHECK(fn != NULL);
	return fn();
}

static void *
load(void)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!plugin)
		printf("%s\n", dlerror());
	CHECK(plugin != NULL);
	return plugin;
}

static void *
use_and_outlive(void *plugin)
{
	CHECK(use(plugin) == 2);
	(void)pthread_barrier_wait(&used);
	(void)pthread_barrier_wait(&closed);
	return NULL;
}

static void
check_thread_that_ends_after_the_plugin_was_closed(void)
{
	void *plugin = load();
	pthread_t thread;

	CHECK(pthread_barrier_init(&used, NULL, 2) == 0);
	CHECK(pthread_barrier_init(&closed, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, use_and_outlive, plugin) == 0);
	(void)pthread_barrier_wait(&used);
	CHECK(dlclose(plugin) == 0);
	(void)pthread_barrier_wait(&closed);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* Each cycle creates and deletes a key: that fails if the plugin leaks keys. */
static void
check_plugin_that_is_loaded_many_times(void)
{
	for (int i = 0; i < CYCLES; i++) {
		void *plugin = load();
		pthread_key_t key;

		CHECK(use(plugin) == 2);
		CHECK(dlclose(plugin) == 0);
		CHECK(pthread_key_create(&key, NULL) == 0);
		CHECK(pthread_key_delete(key) == 0);
	}
}

int
main(int argc, char **argv)
{
	CHECK(argc == 2);
	path = argv[1];
	check_thread_that_ends_after_the_plugin_was_closed();
	check_plugin_that_is_loaded_many_times();
	return 0;
}
