/* dag_play.h - runs of a random graph, on a loop, its pools and plain threads. */
#ifndef WEFT_SIM_DAG_PLAY_H
#define WEFT_SIM_DAG_PLAY_H

/* A planted bug, which the checks must find. */
enum dag_spoil {
	DAG_FAIR,
	DAG_SPOIL_EDGE,  /* the template lacks an edge */
	DAG_SPOIL_TWICE, /* a step is done twice */
	DAG_SPOIL_OVER,  /* a run is marked as over while it runs */
	DAG_SPOIL_VALUE, /* the value of a step is changed */
};

void dag_play(enum dag_spoil spoil);

#endif
