/* real_redis.c - start and end a redis-server. */
#include "real_redis.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"

_Noreturn static void
become_server(const struct real_redis *redis, int out)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(out, STDOUT_FILENO);
	(void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis->socket,
	             "--dir", redis->folder, "--save", "", "--appendonly", "no", (char *)NULL);
	_exit(127);
}

/* Whether the server has printed that it is ready, before its end. */
static bool
says_ready(int from)
{
	FILE *said = fdopen(from, "r");
	char line[512];
	bool ready = false;

	CHECK(said != NULL);
	while (!ready && fgets(line, sizeof(line), said))
		ready = strstr(line, "eady to accept connections") != NULL;
	(void)fclose(said);
	return ready;
}

void
real_redis_start(struct real_redis *redis)
{
	int pipes[2], status = 0;

	(void)snprintf(redis->folder, sizeof(redis->folder), "/tmp/weft-redis-XXXXXX");
	CHECK(mkdtemp(redis->folder) != NULL);
	(void)snprintf(redis->socket, sizeof(redis->socket), "%s/socket", redis->folder);
	CHECK_EQ(pipe(pipes), 0);
	redis->pid = fork();
	CHECK(redis->pid >= 0);
	if (redis->pid == 0)
		become_server(redis, pipes[1]);
	(void)close(pipes[1]);
	if (says_ready(pipes[0]))
		return;
	CHECK_EQ(waitpid(redis->pid, &status, 0), redis->pid);
	(void)rmdir(redis->folder);
	CHECK_EQ(WEXITSTATUS(status), 127);
	test_skip("redis-server is not installed");
}

void
real_redis_kill(struct real_redis *redis)
{
	if (redis->pid == 0)
		return;
	CHECK_EQ(kill(redis->pid, SIGKILL), 0);
	CHECK_EQ(waitpid(redis->pid, NULL, 0), redis->pid);
	redis->pid = 0;
}

void
real_redis_stop(struct real_redis *redis)
{
	real_redis_kill(redis);
	(void)unlink(redis->socket);
	CHECK_EQ(rmdir(redis->folder), 0);
}
