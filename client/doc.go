// Package client is the Go client of Fanfare's HTTP API.
//
// A Client is safe for concurrent use and keeps nothing but its connections.
// An answer of the server that is not a success is returned as a
// *fanfare.Error, with the code, the place and the hint that the server gave;
// where no answer came at all it is an *Unreachable. Reads, and writes that
// can be repeated without harm, are tried four times, with jitter, when the server
// cannot be reached or asks to come again (429, 503, Retry-After); what is not safe
// to repeat is sent once. Lists come as iterators that ask for page after page.
//
//	c, err := client.New("http://127.0.0.1:8085", key)
//	event, err := c.Publish(ctx, "earthquakes", quake, client.PublishOptions{ID: quake.ID})
//	trace, err := c.Event(ctx, event.ID)
package client
