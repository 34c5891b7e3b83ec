package mutation

import "path/filepath"

// packages are the packages of internal/condition that decide whether a condition matches.
var packages = []string{".", "lang", "expr", "ngram"}

// folders are the folders of packages in a module.
func folders(module string) []string {
	dirs := make([]string, len(packages))
	for i, name := range packages {
		dirs[i] = filepath.Join(module, "internal", "condition", name)
	}
	return dirs
}

// planted are mutants that have to be found at every run, each within a minute. The first one
// is the defect that once notified people whose condition was false.
var planted = []string{
	"condition.conjunctShape.setPlan condition 1",
	"condition.conjunctShape.setPlan condition 2",
	"expr.Comparison.MatchesOrder comparison 1",
	"condition.crossingKey.eventRange condition 5",
	"condition.bucket.remove assignment 2",
	"condition.grid.eachCellAt assignment 3",
	"condition.grid.keyOf assignment 2",
	"condition.grid.countRows assignment 1",
	"condition.filters.addConjunction call 4",
	"condition.filter.remove call 1",
	"condition.matchFrame.markText condition 1",
	"condition.matchFrame.begin assignment 1",
	"condition.accessPath.canCover condition 1",
	"expr.And.Eval assignment 1",
	"expr.Or.Eval assignment 1",
	"condition.table.remove call 1",
	"expr.indexAllocator.release condition 1",
	"condition.topic.removeLocked call 1",
	"condition.table.emitMatches condition 1",
	"condition.residual.evalRow condition 1",
	"ngram.Index.Add call 1",
	"condition.accessPath.takeEquality condition 1",
	"expr.InMixedList.Eval condition 2",
	"expr.Equality.Eval condition 1",
	"expr.equal condition 1",
	"expr.compare condition 1",
	"expr.ToFloat condition 1",
	"expr.LoadGeoPoint assignment 1",
	"lang.GeoPoint.Within condition 1",
	"expr.HasField.Eval condition 1",
	"expr.Frame.AttributeMap condition 1",
	"expr.previousEvent.exists condition 1",
	"expr.parseNumber condition 1",
	"expr.Document.Scan condition 1",
	"condition.guardTable.scanKey condition 1",
	"condition.conjunctShape.addEvent condition 1",
	"condition.conjunctShape.holds condition 1",
	"condition.filters.allConjunctsHold condition 1",
	"condition.subscriptionColumns.ensureEntry assignment 3",
	"condition.hitWriter.write condition 1",
}
