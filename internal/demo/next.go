package demo

import (
	"fmt"
	"io"
)

// printNext writes commands that the user can run next, as lines to paste into a shell.
func (h *host) printNext(w io.Writer, o Options) {
	heading(w, "Next steps")
	if o.Once {
		if h.temporary {
			fmt.Fprintf(w, "  Without --once, the server keeps running and this section lists next steps.\n")
		} else {
			fmt.Fprintf(w, "  The data was not removed. To continue with it, run:\n\n    %s serve --data-dir %s\n", o.Command, h.dir)
		}
		h.printOwnTopic(w)
		return
	}
	url := h.api.Server()
	fmt.Fprintf(w, `  API       %[1]s/v1
            described by %[1]s/openapi.json
  Console   %[1]s/console/
            sign in with the key in the file below
  Metrics   %[1]s/metrics
  Key       %[2]s
  Messages  are only counted, and never reach example.net. While the server is
            running, the unsubscribe link above works in a browser.

  Paste these lines into another shell:

    export FANFARE_SERVER=%[1]s FANFARE_SERVICE=%[3]s
    export FANFARE_DATA_DIR=%[4]s

`, url, h.keyFile(), h.example.name, h.dir)
	fmt.Fprintf(w, `  Publish your own event:

    curl -s "$FANFARE_SERVER/v1/topics/%s/events?id=/%s" \
      -H "Authorization: Bearer $(cat "$FANFARE_DATA_DIR/admin.key")" \
      -H "X-Fanfare-Service: $FANFARE_SERVICE" \
      -H "Content-Type: application/json" -d '%s'

`, h.example.topic, h.example.idField, h.example.invented)
	fmt.Fprintf(w, `  Trace the event and a person, show the status, pause and resume:

    %[1]s trace %[4]s
    %[1]s trace --subscriber %[2]s --limit 3
    %[1]s status
    %[1]s pause --service %[3]s --reason "a look"
    %[1]s resume --service %[3]s
`, o.Command, h.shownAddress(), h.example.name, h.example.inventedID)
	h.printOwnTopic(w)
}

func (h *host) printOwnTopic(w io.Writer) {
	fmt.Fprintf(w, "\n  To create your own topic, see \"Your first topic\" in README.md.\n")
}

// shownAddress returns the address of the person whose mail was shown.
func (h *host) shownAddress() string {
	address, _ := h.kept.pick()
	return address
}
