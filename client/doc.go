// Package client is the Go client of Fanfare's HTTP API.
//
// A Client is safe for concurrent use and keeps only its connections. If the server refuses a
// request, the error is a *fanfare.Error with the code, the place and the hint from the server. If
// the server does not respond, the error is an *Unreachable. Reads, and writes that can be repeated
// without harm, are tried four times, with jitter, if the server cannot be reached or requests a
// retry (429, 503, Retry-After). Other writes are sent once. Lists are iterators that
// request page after page.
//
//	c, err := client.New("http://127.0.0.1:8085", key)
//	event, err := c.Publish(ctx, "earthquakes", quake, client.PublishOptions{ID: quake.ID})
//	trace, err := c.Event(ctx, event.ID)
package client
