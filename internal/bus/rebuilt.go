package bus

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// rebuilt collects the warnings of the embedded server, several for each stream, about an index
// that is older than its messages, and logs one line at INFO instead. A killed process leaves
// such an index: the server writes it at intervals and at a clean stop, and rebuilds it from the
// messages if it is old.
type rebuilt struct {
	mu      sync.Mutex
	streams map[string]bool
	told    bool // the start is over; later warnings are not part of it
}

// staleIndex begins the warnings about an index that is rebuilt. The warnings about a damaged
// index differ; a kill does not damage an index, so they stay warnings.
var staleIndex = []string{
	"Stream state outdated, ",
	"Stream state detected prior state, ",
	"Recovering stream state from index errored: prior state file",
}

// note records a warning, and reports whether it was about a stale index.
func (r *rebuilt) note(text string) bool {
	rest, ok := strings.CutPrefix(text, "Filestore [")
	if !ok {
		return false
	}
	stream, what, ok := strings.Cut(rest, "] ")
	if !ok || !slices.ContainsFunc(staleIndex, func(begin string) bool { return strings.HasPrefix(what, begin) }) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told {
		return false
	}
	if r.streams == nil {
		r.streams = map[string]bool{}
	}
	r.streams[stream] = true
	return true
}

// tell logs the streams that the start recovered, with the number of their messages.
func (r *rebuilt) tell(log *slog.Logger, s *server.Server) {
	r.mu.Lock()
	names := slices.Sorted(maps.Keys(r.streams))
	r.told = true
	r.mu.Unlock()
	if len(names) == 0 {
		return
	}
	messages := map[string]uint64{}
	if info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true}); err == nil { // the log line is useful without the counts, too
		for _, account := range info.AccountDetails {
			for i := range account.Streams {
				messages[account.Streams[i].Name] = account.Streams[i].State.Msgs
			}
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d messages)", name, messages[name])
	}
	log.Info("the bus was not shut down cleanly; recovered its streams", "recovered", strings.Join(names, ", "))
}
