/* panel.h - what the demo adds to the page, as bytes with a NUL behind them. */
#ifndef WEFT_DEMO_PANEL_H
#define WEFT_DEMO_PANEL_H

extern const unsigned char panel_html[], panel_script[];

#endif
