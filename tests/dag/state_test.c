/* state_test.c - the saved state of a run: only complete records count, and each is used once. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dag/run.h"
#include "test.h"

static char folder[64], path[96], file[112];

static void
make_folder(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/weft-state-XXXXXX");
	CHECK(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/x.dag", folder);
	(void)snprintf(file, sizeof(file), "%s.state", path);
}

static void
drop_folder(void)
{
	(void)unlink(file);
	CHECK_EQ(rmdir(folder), 0); /* fails if anything else is left in it */
}

static const unsigned char *
key_of(int number)
{
	static unsigned char key[HASH_BYTES];

	memset(key, number, sizeof(key));
	return key;
}

static void
put_text(struct state *state, int key, const char *text)
{
	weft_value value = weft_value_text(text);

	state_put(state, key_of(key), &value);
	weft_value_drop(&value);
}

static void
check_text(struct state *state, int key, const char *text)
{
	weft_value value = { 0 };

	CHECK_EQ(state_take(state, key_of(key), &value), text != NULL);
	if (text)
		CHECK_STR(value.as.ptr, text);
	weft_value_drop(&value);
}

static off_t
size_of_file(void)
{
	struct stat about;

	CHECK_EQ(stat(file, &about), 0);
	return about.st_size;
}

TEST(saved_value_is_taken_once_by_the_next_run)
{
	weft_value items[2] = { weft_value_text("one\ntwo"), weft_value_text("") };
	weft_value list = weft_value_list(items, 2), none = { 0 };
	struct state state;

	make_folder();
	CHECK_EQ(state_open(&state, path, false), 0);
	put_text(&state, 1, "first\n\n");
	put_text(&state, 1, "second");
	state_put(&state, key_of(2), &list);
	state_put(&state, key_of(3), &none);
	check_text(&state, 1, NULL); /* not by the run that put it */
	state_close(&state, false);
	weft_value_drop(&list);

	CHECK_EQ(state_open(&state, path, true), 0);
	check_text(&state, 1, "first\n\n");
	check_text(&state, 1, "second");
	check_text(&state, 1, NULL);
	CHECK(state_take(&state, key_of(2), &list));
	CHECK_EQ(((weft_list *)list.as.ptr)->count, 2);
	CHECK_STR(((weft_list *)list.as.ptr)->items[0].as.ptr, "one\ntwo");
	CHECK_STR(((weft_list *)list.as.ptr)->items[1].as.ptr, "");
	weft_value_drop(&list);
	CHECK(state_take(&state, key_of(3), &none));
	CHECK(!none.type);
	check_text(&state, 4, NULL);
	state_close(&state, true);
	CHECK(access(file, F_OK) < 0);
	drop_folder();
}

TEST(taken_value_is_there_for_the_run_after)
{
	struct state state;

	make_folder();
	CHECK_EQ(state_open(&state, path, false), 0);
	put_text(&state, 1, "one");
	state_close(&state, false);
	CHECK_EQ(state_open(&state, path, true), 0);
	check_text(&state, 1, "one");
	put_text(&state, 2, "two");
	state_close(&state, false);
	CHECK_EQ(state_open(&state, path, true), 0);
	check_text(&state, 1, "one");
	check_text(&state, 2, "two");
	state_close(&state, false);
	CHECK_EQ(state_open(&state, path, false), 0);
	check_text(&state, 1, NULL);
	state_close(&state, false);
	drop_folder();
}

/* Truncate after each byte: complete records are there, and nothing else. */
TEST(truncated_record_is_ignored)
{
	struct state state;
	off_t one, two;

	make_folder();
	CHECK_EQ(state_open(&state, path, false), 0);
	put_text(&state, 1, "one");
	one = size_of_file();
	put_text(&state, 2, "two");
	two = size_of_file();
	state_close(&state, false);
	for (off_t size = two; size >= 0; size--) {
		CHECK_EQ(truncate(file, size), 0);
		CHECK_EQ(state_open(&state, path, true), 0);
		check_text(&state, 1, size >= one ? "one" : NULL);
		check_text(&state, 2, size == two ? "two" : NULL);
		state_close(&state, false);
		if (size_of_file() > size)
			size = size > 17 ? size : 0; /* its header line was written again */
	}
	drop_folder();
}

TEST(corrupt_record_is_ignored)
{
	struct state state;
	off_t begin, size;
	int fd;
	char byte;

	make_folder();
	CHECK_EQ(state_open(&state, path, false), 0);
	begin = size_of_file();
	put_text(&state, 1, "one");
	size = size_of_file();
	state_close(&state, false);
	for (off_t at = begin; at < size; at++) {
		CHECK_EQ(state_open(&state, path, false), 0);
		put_text(&state, 1, "one");
		state_close(&state, false);
		fd = open(file, O_RDWR | O_CLOEXEC);
		CHECK_EQ(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(state_open(&state, path, true), 0);
		check_text(&state, 1, NULL);
		state_close(&state, false);
	}
	drop_folder();
}

TEST(state_is_locked_by_one_run)
{
	struct state state, other;

	make_folder();
	CHECK_EQ(state_open(&state, path, false), 0);
	CHECK_EQ(state_open(&other, path, true), WEFT_EBUSY);
	state_put(&other, key_of(1), &(weft_value){ 0 }); /* does nothing: it is not open */
	state_close(&other, true);
	CHECK_EQ(access(file, F_OK), 0);
	state_close(&state, false);
	CHECK_EQ(state_open(&other, path, true), 0);
	state_close(&other, true);
	drop_folder();
}

TEST(state_file_is_accessible_only_by_its_owner)
{
	struct state state;
	struct stat about;

	make_folder();
	CHECK_EQ(state_open(&state, path, false), 0);
	CHECK_EQ(stat(file, &about), 0);
	CHECK_EQ(about.st_mode & 0777, 0600);
	state_close(&state, true);
	drop_folder();
}

TEST(hash_matches_the_sha256_test_vectors)
{
	static const char *const known[] = {
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8"
		"55",
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015"
		"ad",
	};
	static const char *const texts[] = { "", "abc" };
	unsigned char out[HASH_BYTES];
	char hex[2 * HASH_BYTES + 1];
	struct hash hash;

	for (int i = 0; i < 2; i++) {
		hash_begin(&hash);
		hash_add(&hash, texts[i], strlen(texts[i]));
		hash_end(&hash, out);
		for (int k = 0; k < HASH_BYTES; k++)
			(void)snprintf(hex + 2 * k, 3, "%02x", out[k]);
		CHECK_STR(hex, known[i]);
	}
}

/* --- files that are not a valid state --------------------------------------- */

static void
check_refused(const char *why)
{
	struct state state;

	CHECK_EQ(state_open(&state, path, true), WEFT_EPERM);
	CHECK(strstr(weft_detail(), why));
	state_close(&state, false);
	CHECK_EQ(state_open(&state, path, false), WEFT_EPERM);
	state_close(&state, false);
}

static void
write_file(const char *text, mode_t mode)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK_EQ(fchmod(fd, mode), 0);
	CHECK_EQ(close(fd), 0);
}

TEST(state_that_other_users_can_write_or_own_is_refused)
{
	struct state state;

	make_folder();
	write_file("weft dag state 1\n", 0620);
	check_refused("others may write");
	write_file("weft dag state 1\n", 0602);
	check_refused("others may write");
	if (geteuid() == 0) {
		write_file("weft dag state 1\n", 0600);
		CHECK_EQ(chown(file, 1, 1), 0);
		check_refused("another user");
	}
	CHECK_EQ(unlink(file), 0);
	write_file("weft dag state 1\n", 0644);
	CHECK_EQ(state_open(&state, path, true), 0);
	state_close(&state, false);
	drop_folder();
}

TEST(file_that_is_not_a_state_is_refused_and_kept)
{
	make_folder();
	write_file("notes of somebody\n", 0600);
	check_refused("is not a state file of weft dag; move it away");
	CHECK_EQ(size_of_file(), 18);
	CHECK_EQ(unlink(file), 0);
	CHECK_EQ(mkfifo(file, 0600), 0);
	check_refused("is not a state file of weft dag; move it away");
	drop_folder();
}
