/* dag_play.h - runs of a drawn graph, on a loop, its pools and plain threads. */
#ifndef WEFT_SIM_DAG_PLAY_H
#define WEFT_SIM_DAG_PLAY_H

/* What is done once that must not be, and is found by the judge. */
enum dag_spoil {
	DAG_FAIR,
	DAG_SPOIL_EDGE,  /* the template lacks an edge */
	DAG_SPOIL_TWICE, /* a step is done twice */
	DAG_SPOIL_OVER,  /* a run is told to be over that is not */
	DAG_SPOIL_VALUE, /* a value is changed on its way */
};

void dag_play(enum dag_spoil spoil);

#endif
