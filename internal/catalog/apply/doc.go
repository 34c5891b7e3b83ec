// Package apply compares a document with the configuration and plans the change: the differences to
// report, the records to store and the next snapshot of the configuration. It checks everything
// that a document refers to and renders the templates for the topics that use them. The registry
// commits plans. A plan keeps nothing and changes nothing by itself.
package apply
