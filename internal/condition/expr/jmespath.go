package expr

import (
	"time"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types/ref"

	"fanfare.dev/fanfare/internal/condition/lang"
	"fanfare.dev/fanfare/internal/jmespath"
)

// A JMESPathPredicate is jmespath(value, 'filter').
type JMESPathPredicate struct {
	Operand
	filter *jmespath.Filter
}

func (t *JMESPathPredicate) Eval(f *Frame) Truth {
	v, ok := t.Load(f)
	if !ok {
		return Error
	}
	switch x := v.(type) {
	case time.Time:
		v = x.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		v = x.String()
	case ref.Val:
		v = lang.JSONValue(x)
	}
	return TruthOf(f.jmespath.Match(t.filter, v))
}

// jmespath returns the predicate of a call of jmespath, or nil.
func (b *Builder) jmespath(call celast.CallExpr) Predicate {
	filter, ok := lang.JMESPathFilter(call)
	if !ok {
		return nil
	}
	x := b.Operand(call.Args()[0])
	if x == nil {
		return nil
	}
	return &JMESPathPredicate{x, filter}
}
