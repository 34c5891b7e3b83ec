// Package terminal writes what people read: text and tables that fit the width of the screen,
// colours, numbers, and progress bars.
package terminal
