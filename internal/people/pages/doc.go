// Package pages writes what recipients see in a browser: the pages behind the links
// in messages. It keeps nothing and asks nobody: what stands
// on a page comes with the call.
//
// A page is one document of HTML. It needs no script, and nothing of another place;
// its policy allows the style, and where there is one the script, that it has, by
// their hashes. It is readable in light and dark, narrow and wide, with a keyboard
// and with a screen reader (WCAG 2.2, level AA). Text is escaped by html/template;
// what a service says about its looks comes in here checked.
package pages
