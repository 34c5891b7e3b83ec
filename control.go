package fanfare

// A Control is a setting of a broadcast other than its switches. A broadcast has at most one
// Control of each name.
type Control struct {
	Event EventRef
	Name  ControlName
	Value string // "" removes it
}

// A ControlName names the setting of a Control.
type ControlName string

// The names of controls.
const (
	ControlHold     ControlName = "hold"     // the broadcast waits for approval; the value is the reason
	ControlApproved ControlName = "approved" // the value names the approver
	ControlRate     ControlName = "rate"     // the maximum sending rate, such as 100/s
)

// BroadcastHeld is the state of a broadcast that waits for approval.
const BroadcastHeld = "held"
