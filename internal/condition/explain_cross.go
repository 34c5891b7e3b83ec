package condition

import "fanfare.dev/fanfare"

// previousValue explains what the value of a crossing was, in one part: it is written as
// the value is now.
func (x *explainer) previousValue(c crossing) fanfare.Part {
	part := fanfare.Part{Text: x.text(c.now) + ", before", Kind: fanfare.PartValue, Result: fanfare.PartFound}
	v, err := x.evaluate(c.previous)
	switch _, known := x.frame.previous.decoded(); {
	case !known:
		part.Result, part.Error = fanfare.PartError, "no event of its key is known that came before"
	case err != nil:
		part.Result, part.Error = fanfare.PartError, x.describeCELError(err, nil)
	default:
		part.Value = showCEL(v)
	}
	return part
}
