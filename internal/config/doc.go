// Package config reads the configuration of the server.
//
// A value comes from a flag, an environment variable (FANFARE_ and the name of the field in
// capitals), the YAML file of --config, or the default, in this order of precedence. A change
// takes effect after a restart.
//
// Unknown keys are errors with their line. Values that would fail later are refused with the name
// of the field, the source of the value and a hint. The file must not contain secrets: set a
// secret by its environment variable or by a *_file field that names a file with it.
package config
