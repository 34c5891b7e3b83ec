package postgres

// planSettings fix the plan of each statement. Each statement looks up a key or follows an index, and the planner would
// choose another plan only if it takes a table that has just been filled for empty: it would then read a million
// subscribers unordered and sort them on disk. Each connection plans a statement once and does not replan it for other
// parameter values.
var planSettings = map[string]string{
	"plan_cache_mode":                 "force_generic_plan",
	"enable_seqscan":                  "off",
	"enable_bitmapscan":               "off",
	"enable_hashjoin":                 "off",
	"enable_sort":                     "off",
	"max_parallel_workers_per_gather": "0",
	"jit":                             "off",
}
