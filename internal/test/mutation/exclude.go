package mutation

import (
	"slices"
	"strings"
)

// notMatching are functions of the index that decide nothing about a match, with the reason. A
// name that ends in * is the beginning of some.
var notMatching = []struct{ name, why string }{
	{"explainer.*", "an explanation is shown, and the match is over"},
	{"Index.Explain*", "an explanation is shown, and the match is over"},
	{"Index.FoundBy", "an explanation is shown, and the match is over"},
	{"show*", "it words a value of an explanation"},
	{"kind.String", "it words an error"},
	{"param.takes", "it words an error"},
	{"invalid", "it makes an error"},
	{"at", "it places an error"},
	{"lengthBefore", "it places an error"},
	{"fromIssues", "it words an error"},
	{"unknownMember", "it words an error"},
	{"unknownTopic", "it words an error"},
	{"unknownFunction", "it words an error"},
	{"didYouMean", "it words an error"},
	{"distance", "it looks for names that were meant"},
	{"pointer", "it places an error"},
	{"subscriptions", "it words an error"},
	{"checker.*", "it refuses conditions that are mistakes; what it takes is evaluated all the same"},
	{"Index.Load", "it estimates a cost"},
	{"Index.Dearest", "it lists costs"},
	{"Index.PriceFilter", "it estimates a cost"},
	{"Index.PriceParams", "it estimates a cost"},
	{"topic.eachDear*", "it lists costs"},
	{"Index.eachDear", "it lists costs"},
	{"rule.eachDear", "it lists costs"},
	{"dearest", "it lists costs"},
	{"nanosOf*", "it estimates a cost"},
	{"sizeOf", "it estimates a cost"},
	{"plan.dear", "it estimates a cost"},
	{"draft.price", "it estimates a cost"},
	{"draft.computes", "it estimates a cost"},
	{"path.nanos", "it estimates a cost"},
	{"filters.costOf", "it estimates a cost"},
	{"cost*", "it estimates a cost"},
	{"placing.cost", "it estimates how many rows share a bucket: any guard is sound"},
	{"page.values", "it gives the params of a row to the estimate of a cost"},
	{"Index.Met", "it counts for reports"},
	{"assert*", "it is a check of tests"},
	{"auditor.*", "it is a check of tests"},
	{"Audience.*", "the audience of a sender has tests of its own"},
	{"NewAudience", "the audience of a sender has tests of its own"},
	{"object", "it reads attributes of an audience"},
	{"topic.size", "it counts for reports"},
	{"Index.Len", "it counts for reports"},
	{"init", "it sets tables up"},
}

// skipped reports whether the sites of a function are left out.
func skipped(function string) bool {
	method := function[strings.LastIndexByte(function, '.')+1:]
	return strings.HasPrefix(method, "assert") || slices.ContainsFunc(notMatching, func(n struct{ name, why string }) bool {
		prefix, begins := strings.CutSuffix(n.name, "*")
		return function == n.name || begins && strings.HasPrefix(function, prefix)
	})
}
