package mutation

// planted are mutants that have to be found at every run.
var planted = []string{}
