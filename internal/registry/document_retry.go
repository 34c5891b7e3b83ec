package registry

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"fanfare.dev/fanfare"
)

// RetryBy has the waits between attempts for answers of a class.
type RetryBy map[fanfare.Class][]Duration

// retryDefault is what a document calls the waits of all classes that have none
// of their own.
const retryDefault = "default"

// retry reads the waits of a channel: one list, or lists by class.
func (n node) retry(c *ChannelSpec) {
	if _, list := n.resolved().(*ast.SequenceNode); list {
		c.Retry = n.durations()
		return
	}
	all := fields{retryDefault: func(v node) { c.Retry = v.durations() }}
	by := RetryBy{}
	retryFields(by, all)
	n.fields(all)
	if len(by) > 0 {
		c.RetryBy = by
	}
}

// retryBy reads what a channel shows.
func (n node) retryBy() RetryBy {
	all, by := fields{}, RetryBy{}
	retryFields(by, all)
	n.fields(all)
	return by
}

// retryFields adds the fields that fill the lists of classes. An empty list is one: such
// an answer is not tried again.
func retryFields(by RetryBy, all fields) {
	for _, class := range fanfare.Classes {
		all[string(class)] = func(v node) {
			by[class] = v.durations()
			if by[class] == nil {
				by[class] = []Duration{}
			}
		}
	}
}

func (n node) durations() []Duration {
	var all []Duration
	n.each(func(v node) { all = append(all, v.duration()) })
	if len(all) > maxRetries {
		n.fault("", "more than %d waits", maxRetries)
	}
	return slices.Clip(all)
}
