/* page.h - the page as it is embedded.  Private. */
#ifndef WEFT_ADMIN_PAGE_H
#define WEFT_ADMIN_PAGE_H

/* What page.html calls {{style}}, {{script}} and so on; ended by NUL.  Made by
 * proto/admin/embed.cmake. */
extern const unsigned char weft__admin_page_html[];
extern const unsigned char weft__admin_page_style[];
extern const unsigned char weft__admin_page_script[];

#endif
