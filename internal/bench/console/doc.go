// Package console measures the API as the pages of the web console use it, with many deliveries and subscribers.
package console
