/* dag_write.c - graphs and runs as text: for Graphviz, as JSON, as a trace.
 *
 * One line for each node and edge, in the order of adding, so that two texts can be compared.
 * Names are quoted: whatever they contain, the text is well-formed.
 */
#include "base/text.h"
#include "base/utf8.h"
#include "dag/dag.h"

#define THREADS_MAX 256u /* that a trace distinguishes */

/* What JSON contains besides the graph itself. */
struct json_opts {
	const weft_dag_run *run; /* or NULL */
	bool measured;
};

struct out {
	char *buf;
	size_t size, room;
	bool failed;
};

/* --- pieces -------------------------------------------------------------- */

static void
dag_write_grow(struct out *out, size_t more)
{
	size_t room = out->room ? out->room * 2 : 4096;
	char *buf;

	while (room < out->size + more)
		room *= 2;
	buf = weft__sys->alloc(room);
	if (!buf) {
		out->failed = true;
		return;
	}
	if (out->size > 0)
		__builtin_memcpy(buf, out->buf, out->size);
	weft__sys->release(out->buf);
	out->buf = buf;
	out->room = room;
}

static void
add_bytes(struct out *out, const char *bytes, size_t size)
{
	if (out->size + size + 1 > out->room && !out->failed)
		dag_write_grow(out, size + 1);
	if (out->failed)
		return;
	__builtin_memcpy(out->buf + out->size, bytes, size);
	out->size += size;
	out->buf[out->size] = '\0';
}

static void
dag_write_add(struct out *out, const char *text)
{
	add_bytes(out, text, __builtin_strlen(text));
}

static void
add_number(struct out *out, int64_t number)
{
	char digits[32];
	struct weft__text text = weft__text_begin(digits, sizeof(digits));

	weft__text_number(&text, number);
	dag_write_add(out, digits);
}

/* Microseconds with three decimal places. */
static void
add_us(struct out *out, uint64_t ns)
{
	char places[4] = { (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
		           (char)('0' + ns % 10), '\0' };

	add_number(out, (int64_t)(ns / 1000));
	dag_write_add(out, ".");
	dag_write_add(out, places);
}

/* Valid for both Graphviz and JSON. */
static void
add_quoted(struct out *out, const char *text)
{
	char character[6];

	dag_write_add(out, "\"");
	while (*text)
		add_bytes(out, character, weft__json_character(&text, character));
	dag_write_add(out, "\"");
}

static const char *
place_name(const struct weft__dag_node *node)
{
	static const char *const names[] = { "cpu", "loop", "blocking" };

	return node->flags & WEFT__DAG_INPUT ? "input" : names[node->place];
}

static const char *
state_name(const struct weft__dag_step *step)
{
	static const char *const names[] = {
		"waiting", "started", "retrying", "done", "failed", "skipped", "dropped",
	};

	return names[step->state];
}

/* --- Graphviz ------------------------------------------------------------ */

static const char *
colour(const struct weft__dag_step *step)
{
	static const char *const names[] = {
		"white", "lightblue", "khaki", "palegreen", "salmon", "grey90", "grey70",
	};

	return names[step->state];
}

static void
dot_node(struct out *out, const struct weft__dag_node *node, const struct weft__dag_step *step)
{
	bool input = node->flags & WEFT__DAG_INPUT;

	dag_write_add(out, "\t");
	add_quoted(out, node->more->name);
	dag_write_add(out, input                          ? " [shape=oval"
	                   : node->place == WEFT_DAG_CPU  ? " [shape=box"
	                   : node->place == WEFT_DAG_LOOP ? " [shape=ellipse"
	                                                  : " [shape=hexagon");
	if (node->more->set.map)
		dag_write_add(out, ", peripheries=2");
	if (node->more->set.optional)
		dag_write_add(out, ", style=\"dashed,filled\"");
	else if (step && !input)
		dag_write_add(out, ", style=filled");
	if (step && !input) {
		dag_write_add(out, ", fillcolor=");
		dag_write_add(out, colour(step));
	}
	dag_write_add(out, "];\n");
}

static void
dot(struct out *out, const weft_dag *dag, const weft_dag_run *run)
{
	dag_write_add(out, "digraph ");
	add_quoted(out, dag->name);
	dag_write_add(out, " {\n\trankdir=LR;\n");
	for (uint32_t i = 0; i < dag->count; i++)
		dot_node(out, &dag->nodes[i], run ? &run->frame.steps[i] : NULL);
	for (uint32_t i = 0; i < dag->count; i++)
		for (uint32_t k = 0; k < dag->nodes[i].in_count; k++) {
			uint32_t from = dag->in[dag->nodes[i].in_at + k];

			dag_write_add(out, "\t");
			add_quoted(out, dag->nodes[from].more->name);
			dag_write_add(out, " -> ");
			add_quoted(out, dag->nodes[i].more->name);
			dag_write_add(out, ";\n");
		}
	dag_write_add(out, "}\n");
}

/* --- JSON ---------------------------------------------------------------- */

static void
json_inputs(struct out *out, const weft_dag *dag, const struct weft__dag_node *node)
{
	dag_write_add(out, ", \"inputs\": [");
	for (uint32_t k = 0; k < node->in_count; k++) {
		if (k > 0)
			dag_write_add(out, ", ");
		add_quoted(out, dag->nodes[dag->in[node->in_at + k]].more->name);
	}
	dag_write_add(out, "]");
}

static void
json_step(struct out *out, const struct weft__dag_step *step)
{
	const struct weft__dag_frame *frame = step->frame;
	const struct weft__dag_times *times = frame->run->opts.trace
	                                              ? &frame->times[step - frame->steps]
	                                              : NULL;

	dag_write_add(out, ", \"state\": ");
	add_quoted(out, state_name(step));
	dag_write_add(out, ", \"attempts\": ");
	add_number(out, step->attempt + 1);
	if (step->error) {
		dag_write_add(out, ", \"error\": ");
		add_quoted(out, weft_errname(step->error));
	}
	if (times && times->end_ns) {
		dag_write_add(out, ", \"us\": ");
		add_us(out, times->end_ns - times->begin_ns);
	}
}

static void
add_count(struct out *out, const char *name, uint64_t count)
{
	dag_write_add(out, ", \"");
	dag_write_add(out, name);
	dag_write_add(out, "\": ");
	add_number(out, (int64_t)count);
}

static void
json_measured(struct out *out, const struct weft__dag_measured *measured)
{
	uint64_t count = weft__load(&measured->count, WEFT__RELAXED);
	uint64_t sum_ns = weft__load(&measured->sum_ns, WEFT__RELAXED);

	add_count(out, "count", count);
	add_count(out, "failed", weft__load(&measured->failed, WEFT__RELAXED));
	add_count(out, "mean_ns", count ? sum_ns / count : 0);
	add_count(out, "max_ns", weft__load(&measured->max_ns, WEFT__RELAXED));
	add_count(out, "last_ns", weft__load(&measured->last_ns, WEFT__RELAXED));
}

static void
json_node(struct out *out, const weft_dag *dag, uint32_t index, const struct json_opts *opts)
{
	const struct weft__dag_node *node = &dag->nodes[index];
	bool input = node->flags & WEFT__DAG_INPUT;

	dag_write_add(out, index > 0 ? ",\n\t\t{\"name\": " : "\n\t\t{\"name\": ");
	add_quoted(out, node->more->name);
	dag_write_add(out, ", \"place\": ");
	add_quoted(out, place_name(node));
	if (node->more->type) {
		dag_write_add(out, ", \"type\": ");
		add_quoted(out, node->more->type->name);
	}
	if (!input)
		json_inputs(out, dag, node);
	if (opts->run && !input)
		json_step(out, &opts->run->frame.steps[index]);
	if (opts->measured && !input)
		json_measured(out, &node->more->measured);
	dag_write_add(out, "}");
}

/* Runs that are not freed: users less parents, not read atomically.  Nodes that runs have
 * added count as well. */
static uint32_t
runs_of(const weft_dag *dag)
{
	uint32_t parents = weft__load(&dag->parents, WEFT__RELAXED);
	uint32_t users = weft__load(&dag->users, WEFT__RELAXED);

	return users > parents ? users - parents : 0;
}

static void
json_counts(struct out *out, const weft_dag *dag)
{
	dag_write_add(out, ",\n\t\"id\": ");
	add_number(out, (int64_t)dag->id);
	add_count(out, "started", weft__load(&dag->started, WEFT__RELAXED));
	add_count(out, "running", runs_of(dag));
	add_count(out, "failed", weft__load(&dag->failed, WEFT__RELAXED));
	add_count(out, "retries", weft__load(&dag->retries, WEFT__RELAXED));
	add_count(out, "late", weft__load(&dag->late, WEFT__RELAXED));
}

static void
json(struct out *out, const weft_dag *dag, const struct json_opts *opts)
{
	int error = opts->run ? (int)weft__load(&opts->run->frame.error, WEFT__RELAXED) : 0;

	dag_write_add(out, "{\n\t\"name\": ");
	add_quoted(out, dag->name);
	if (opts->run) {
		dag_write_add(out, ",\n\t\"outcome\": ");
		add_quoted(out, error ? weft_errname(error) : "done");
	}
	if (opts->measured)
		json_counts(out, dag);
	dag_write_add(out, ",\n\t\"nodes\": [");
	for (uint32_t i = 0; i < dag->count; i++)
		json_node(out, dag, i, opts);
	dag_write_add(out, "\n\t]\n}\n");
}

/* --- traces -------------------------------------------------------------- */

/* Small IDs for threads, in order of appearance. */
struct threads {
	uintptr_t ids[THREADS_MAX];
	uint32_t count;
};

static uint32_t
number_of(struct threads *threads, uintptr_t thread)
{
	uint32_t i = 0;

	while (i < threads->count && threads->ids[i] != thread)
		i++;
	if (i == threads->count && i < THREADS_MAX)
		threads->ids[threads->count++] = thread;
	return i + 1;
}

static uint64_t
first_time(const struct weft__dag_frame *frame, uint64_t begin_ns)
{
	for (uint32_t i = 0; i < frame->count; i++)
		if (frame->times[i].end_ns && frame->times[i].begin_ns < begin_ns)
			begin_ns = frame->times[i].begin_ns;
	return begin_ns;
}

static void
trace_step(struct out *out, const struct weft__dag_step *step, uint64_t begin_ns,
           struct threads *threads)
{
	const struct weft__dag_frame *frame = step->frame;
	const struct weft__dag_times *t = &frame->times[step - frame->steps];

	if (!t->end_ns)
		return;
	dag_write_add(out, ",\n\t{\"ph\": \"X\", \"pid\": 1, \"tid\": ");
	add_number(out, number_of(threads, t->thread));
	dag_write_add(out, ", \"name\": ");
	add_quoted(out, step->node->more->name);
	dag_write_add(out, ", \"cat\": ");
	add_quoted(out, place_name(step->node));
	dag_write_add(out, ", \"ts\": ");
	add_us(out, t->begin_ns - begin_ns);
	dag_write_add(out, ", \"dur\": ");
	add_us(out, t->end_ns - t->begin_ns);
	dag_write_add(out, ", \"args\": {\"state\": ");
	add_quoted(out, state_name(step));
	dag_write_add(out, ", \"attempts\": ");
	add_number(out, step->attempt + 1);
	if (step->item) {
		dag_write_add(out, ", \"item\": ");
		add_number(out, step->item - 1);
	}
	dag_write_add(out, "}}");
}

static void
trace(struct out *out, const weft_dag_run *run)
{
	uint64_t begin_ns = first_time(&run->frame, WEFT_NEVER);
	struct threads threads = { .count = 0 };

	for (struct weft__dag_frame *f = run->frames; f; f = f->next)
		begin_ns = first_time(f, begin_ns);
	dag_write_add(out, "{\"traceEvents\": [\n\t{\"ph\": \"M\", \"pid\": 1, \"name\": "
	                   "\"process_name\", \"args\": {\"name\": ");
	add_quoted(out, run->dag->name);
	dag_write_add(out, "}}");
	for (uint32_t i = 0; i < run->frame.count; i++)
		trace_step(out, &run->frame.steps[i], begin_ns, &threads);
	for (struct weft__dag_frame *f = run->frames; f; f = f->next)
		for (uint32_t i = 0; i < f->count; i++)
			trace_step(out, &f->steps[i], begin_ns, &threads);
	dag_write_add(out, "\n]}\n");
}

/* --- the calls ----------------------------------------------------------- */

static int
dag_write_give(struct out *out, weft_value *value)
{
	if (!out->failed)
		*value = weft_value_text(out->buf);
	weft__sys->release(out->buf);
	return out->failed || value->type != &weft_type_text
	               ? weft__fail(WEFT_ENOMEM, "weft_dag: out of memory")
	               : 0;
}

int
weft_dag_write(const weft_dag *dag, int format, weft_value *value)
{
	struct out out = { 0 };

	if (!dag || !value || !dag->checked || (format != WEFT_DAG_DOT && format != WEFT_DAG_JSON))
		return weft__misuse(
			WEFT_EINVAL,
			"weft_dag_write: dag or out is NULL, the graph is not checked, or the "
			"format is invalid");
	if (format == WEFT_DAG_DOT)
		dot(&out, dag, NULL);
	else
		json(&out, dag, &(struct json_opts){ 0 });
	return dag_write_give(&out, value);
}

int
weft__dag_write_measured(const weft_dag *dag, weft_value *value)
{
	struct out out = { 0 };

	json(&out, dag, &(struct json_opts){ .measured = true });
	return dag_write_give(&out, value);
}

int
weft_dag_run_write(weft_dag_run *run, int format, weft_value *value)
{
	struct out out = { 0 };

	if (!run || !value || format < WEFT_DAG_DOT || format > WEFT_DAG_TRACE)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_dag_run_write: run or out is NULL, or the format is invalid");
	if (weft__load(&run->state, WEFT__ACQUIRE) == WEFT__DAG_GOING)
		return weft__fail(WEFT_EBUSY, "weft_dag_run_write: the run is still running");
	if (format == WEFT_DAG_TRACE && !run->opts.trace)
		return weft__fail(WEFT_EINVAL,
		                  "weft_dag_run_write: the run was made without opts.trace");
	if (format == WEFT_DAG_DOT)
		dot(&out, run->dag, run);
	else if (format == WEFT_DAG_JSON)
		json(&out, run->dag, &(struct json_opts){ .run = run });
	else
		trace(&out, run);
	return dag_write_give(&out, value);
}
