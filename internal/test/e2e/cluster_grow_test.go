package e2e

import (
	"os"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A single server with PostgreSQL becomes the first node of a cluster, with its data directory: its keys, links and ids stay
// valid, and the messages that wait for a retry are sent.
func TestASinglePostgreSQLServerGrowsIntoACluster(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	one := prepare(t)
	one.database = c.database
	one.start()
	r := newRelay(t, sink.Config{})
	one.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, ""))
	people := crowd(5)
	one.subscribe(people...)
	first := one.http.publish(`{"title":"first"}`)
	one.http.completed(first)
	link := field(r.one(people[0]), "List-Unsubscribe")
	one.mustStop()

	one.args = c.node("one").args
	one.launch()
	one.ready("it leads")
	one.http.url = one.url
	two := c.node("two")
	two.launch()
	two.ready("it forwards")
	two.use(one.key)
	if again := two.http.publish(`{"title":"second"}`); again == first {
		t.Errorf("the event %s has the id of another", again)
	} else {
		two.http.completed(again)
	}
	r.expect("second", people)
	one.mustStop()
	two.ready("it leads")
	_, path, ok := strings.Cut(strings.Trim(strings.Split(link, ",")[0], "<>"), "https://news.example.org")
	if !ok {
		t.Fatalf("List-Unsubscribe: %s", link)
	}
	if status, text, _ := two.http.send("POST", path, "application/x-www-form-urlencoded", "List-Unsubscribe=One-Click"); status != 200 && status != 202 {
		t.Errorf("unsubscribe at the second node: %d %s", status, text)
	}
	if _, err := os.Stat(two.path("admin.key")); err == nil {
		t.Error("the second node has an admin key of its own")
	}
	two.http.completed(two.http.publish(`{"title":"third"}`))
	r.expect("third", people[1:])
}
