// Package pages writes the pages that recipients open from links in messages: sign-up,
// confirmation, preferences and unsubscribe. Package httpapi calls it with the contents. It
// keeps no state and does no I/O.
//
// A page is one HTML document. It needs no script and loads nothing from elsewhere; its
// Content-Security-Policy allows its own style and script by their hashes. It is usable in
// light and dark mode, on narrow and wide screens, with a keyboard and with a screen reader
// (WCAG 2.2, level AA). html/template escapes all texts. The registry checks the settings of
// the appearance.
package pages
