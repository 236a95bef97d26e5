/* dag.c - a program outside of the tree that uses the installed library of graphs. */
#include <stdio.h>
#include <weft/dag.h>

int
main(void)
{
	weft_dag *dag = weft_dag_new("outside");
	struct weft_dag_stats stats;
	int rc = weft_dag_stats(dag, &stats);

	printf("weft_dag from C: %s\n", weft_strerror(rc));
	return rc < 0 || weft_dag_free(dag) < 0;
}
