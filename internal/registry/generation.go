package registry

import (
	"time"

	"fanfare.dev/fanfare/internal/inputerror"
)

// Generation says which of the events of a topic have their messages made together.
// The zero value is continuous: those that wait when it is their turn.
type Generation struct {
	PerChange bool          // each by itself
	Window    time.Duration // those of so long, at its end; 0: no event waits for others
}

// The ways of a document; another is the length of a window.
const (
	continuous = "continuous"
	perChange  = "per_change"
)

// A window is shorter than a request waits for, and longer than a transaction takes.
const (
	minGenerationWindow = time.Second
	maxGenerationWindow = 10 * time.Second
)

// generation is what is kept: "" for the default.
func (n node) generation() string {
	text := n.text()
	if text == continuous {
		return ""
	}
	if _, ok := parseGeneration(text); !ok || text == "" {
		n.fault("use per_change, continuous, or a window of 1s to 10s, such as 5s", "unknown generation %s", inputerror.Quote(text))
	}
	return text
}

// parseGeneration reads what is kept.
func parseGeneration(text string) (g Generation, ok bool) {
	if g.PerChange = text == perChange; g.PerChange || text == "" {
		return g, true
	}
	var err error
	g.Window, err = time.ParseDuration(text)
	return g, err == nil && g.Window >= minGenerationWindow && g.Window <= maxGenerationWindow && g.Window%time.Second == 0
}

// Generation is that of a topic; the default where there is none.
func (r *Registry) Generation(service, topic string) Generation {
	t, ok := r.Topic(service, topic)
	if !ok {
		return Generation{}
	}
	return t.Generation
}
