/* admin_dashboard.h - the embedded page.  Private. */
#ifndef WEFT_ADMIN_DASHBOARD_H
#define WEFT_ADMIN_DASHBOARD_H

/* page.html, and the texts for its placeholders "style" and "script"; ended by NUL.  Made by
 * proto/admin/embed.cmake. */
extern const unsigned char weft__admin_page_html[];
extern const unsigned char weft__admin_page_style[];
extern const unsigned char weft__admin_page_script[];

#endif
