package main

import (
	"errors"
	"fmt"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// someFailed means that a command did its work but for some members, which it
// has printed.
type someFailed struct{ message string }

func (e *someFailed) Error() string { return e.message }

// exitCode is the one table from errors to exit codes.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, some := errors.AsType[*someFailed](err); some {
		return 2
	}
	if _, lost := errors.AsType[*client.Unreachable](err); lost {
		return 3
	}
	switch fanfare.CodeOf(err) {
	case fanfare.Unauthenticated, fanfare.Forbidden:
		return 4
	}
	return 1
}

// report says on standard error what went wrong and what to do.
func (c *cli) report(err error) {
	if err == nil {
		return
	}
	wrong, known := errors.AsType[*fanfare.Error](err)
	if !known {
		fmt.Fprintf(c.err, "fanfare: %v\n", err)
		if lost, ok := errors.AsType[*client.Unreachable](err); ok {
			hint := "check that the server is running there, or set --server or FANFARE_SERVER"
			if lost.Server == defaultServer {
				hint = "start the server with: fanfare serve"
			}
			fmt.Fprintln(c.err, "  "+hint)
		}
		return
	}
	fmt.Fprintf(c.err, "fanfare: %s\n", oneLine(wrong))
	if wrong.Hint != "" {
		fmt.Fprintf(c.err, "  %s\n", asFlag(wrong.Hint))
	}
	if wrong.Code == fanfare.Unauthenticated && c.keyFrom != "" {
		fmt.Fprintf(c.err, "  the command used the key from %s\n", c.keyFrom)
	}
	for _, d := range wrong.Details {
		fmt.Fprintf(c.err, "  %v\n", d)
	}
}

// asFlag replaces the header and the parameter in a hint of the API by the flag of the command.
func asFlag(hint string) string {
	return strings.Replace(hint, "set the header X-Fanfare-Service or the query parameter service", "use --service or FANFARE_SERVICE", 1)
}

// oneLine is an error without its hint and details.
func oneLine(e *fanfare.Error) string {
	head := *e
	head.Hint, head.Details = "", nil
	return head.Error()
}
