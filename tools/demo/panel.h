/* panel.h - the demo's addition to the admin page, as NUL-terminated bytes. */
#ifndef WEFT_DEMO_PANEL_H
#define WEFT_DEMO_PANEL_H

extern const unsigned char panel_html[], panel_script[];

#endif
