//go:build !assertions

package condition

// assertions says whether what the index assumes of its parts is checked while it works.
// Without the build tag assertions it is not, and the compiler leaves the checks out.
const assertions = false

// An auditor evaluates whole conditions beside the index: in builds with assertions.
type matchChecker struct{}

func (*matchChecker) begin(*matchFrame)                 {}
func (*matchChecker) check(*topic, *matchFrame, *Event) {}
