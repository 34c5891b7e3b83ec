package mutation

import (
	"slices"
	"strings"
)

// notMatching are functions that do not decide whether a condition matches, with the reason. A
// name that ends in * is a prefix.
var notMatching = []struct{ name, why string }{
	{"condition.Index.Explain", "it explains a match to a person"},
	{"condition.Index.IndexedBy", "it explains a condition to a person"},
	{"condition.Index.Len", "it counts for reports"},
	{"condition.Index.CountMatches", "it counts for reports"},
	{"condition.Index.UnindexedCost", "it estimates a cost"},
	{"condition.Index.MostExpensive", "it lists costs"},
	{"condition.Index.FilterCost", "it estimates a cost"},
	{"condition.Index.ParamsCost", "it estimates a cost"},
	{"condition.Index.eachUnindexed", "it lists costs"},
	{"condition.topic.eachUnindexed", "it lists costs"},
	{"condition.table.eachUnindexed", "it lists costs"},
	{"condition.sortByCost", "it lists costs"},
	{"condition.plan.unindexedCost", "it estimates a cost"},
	{"condition.compiledFilter.cost", "it estimates a cost"},
	{"condition.compiledFilter.newComputationCost", "it estimates a cost"},
	{"condition.filters.conjunctionCost", "it estimates a cost"},
	{"condition.rowIndexer.cost", "it estimates how many rows share a bucket: any guard is sound"},
	{"condition.Audience.*", "the audience of a sender has its own tests"},
	{"condition.NewAudience", "the audience of a sender has its own tests"},
	{"condition.decodeObject", "it reads attributes of an audience"},
	{"condition.subscriptions", "it words an error"},
	{"condition.matchChecker.*", "it is an assertion"},
	{"expr.ParamPage.Values", "it gives the params of a row to the estimate of a cost"},
	{"expr.nanosOf*", "it estimates a cost"},
	{"expr.NanosOf*", "it estimates a cost"},
	{"expr.weigh", "it estimates a cost"},
	{"lang.Param.expected", "it words an error"},
	{"lang.setPosition", "it gives an error its position"},
	{"lang.lengthBefore", "it gives an error its position"},
	{"lang.Pointer", "it gives an error its position"},
	{"lang.fromIssues", "it words an error"},
	{"lang.UnknownMember", "it words an error"},
	{"lang.Scope.unknownFunction", "it words an error"},
	{"lang.distance", "it finds names that are similar to a wrong one"},
	{"lang.checker.*", "it refuses conditions that are mistakes; the conditions that it accepts are evaluated in any case"},
}

// skipped reports whether the sites of a function are left out.
func skipped(function string) bool {
	method := function[strings.LastIndexByte(function, '.')+1:]
	return strings.HasPrefix(method, "assert") || slices.ContainsFunc(notMatching, func(n struct{ name, why string }) bool {
		prefix, begins := strings.CutSuffix(n.name, "*")
		return function == n.name || begins && strings.HasPrefix(function, prefix)
	})
}
