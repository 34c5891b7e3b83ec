// Package report holds the records of experiments and writes them for people: a table
// on the terminal, an HTML page with plots, and Markdown tables with the median and
// the spread of several runs.
//
// A Record is one run. Records are lines of JSON in a file that only grows. Checks
// collects what must not happen on any machine; a rate is never judged, except that
// the tables mark a goal that was missed.
package report
