// Package bulkfile reads the files that commands send in bulk, NDJSON and CSV, and writes the
// files of refused lines.
package bulkfile
