package fanfare

// A Control is what was said of a broadcast beside its switches. A broadcast has
// one of each name at most.
type Control struct {
	Event EventRef
	Name  ControlName
	Value string // "" removes it
}

// A ControlName says what a Control is about.
type ControlName string

// The names of controls.
const (
	ControlHold     ControlName = "hold"     // it waits for approval; the value says why
	ControlApproved ControlName = "approved" // the value says by whom
	ControlRate     ControlName = "rate"     // how fast it may leave, such as 100/s
)

// BroadcastHeld is the state of a broadcast that waits for approval.
const BroadcastHeld = "held"
