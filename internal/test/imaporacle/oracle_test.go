//go:build peers

package imaporacle

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A difference is a field in which two observations differ.
type difference struct {
	step             int
	command          *command
	key              string
	dovecot, fanfare string // "" if there is no such field
	a, b             fields // of Dovecot and of Fanfare
	combined         fields // the result of SEARCH, if Dovecot's answers to single keys are combined
}

func (d *difference) String() string {
	return fmt.Sprintf("command %d, %s\n    %s: Dovecot %q, Fanfare %q", d.step+1, d.command, d.key, d.dovecot, d.fanfare)
}

// comparison sends one script to both servers.
type comparison struct {
	servers  [2]*server
	users    [2][2]string // name and password
	conns    [2][2]*connection
	views    [2][2]*view
	compared int
	used     []*rule
}

// run compares the answers to a script. It ends at the first command with an unexplained difference, and at a rule after which the servers have
// different states.
func run(ctx context.Context, servers [2]*server, commands []command) (c *comparison, unexplained []*difference, err error) {
	c = &comparison{servers: servers}
	defer c.close()
	for s := range servers {
		if c.users[s][0], c.users[s][1], err = servers[s].account(ctx); err != nil {
			return c, nil, err
		}
		for on := range c.conns[s] {
			c.views[s][on] = newView()
		}
	}
	for i := range commands {
		seen, err := c.step(&commands[i])
		if err != nil {
			return c, nil, fmt.Errorf("command %d, %s: %w", i+1, &commands[i], err)
		}
		c.compared++
		ends := false
		var combined fields
		for _, key := range slices.Sorted(maps.Keys(merged(seen[0], seen[1]))) {
			d := &difference{step: i, command: &commands[i], key: key, dovecot: seen[0][key], fanfare: seen[1][key], a: seen[0], b: seen[1]}
			if d.dovecot == d.fanfare {
				continue
			}
			if isSearchResult(key) && d.statuses() == "OK OK" {
				if combined == nil {
					if combined, err = c.combine(&commands[i]); err != nil {
						return c, nil, fmt.Errorf("command %d, %s: %w", i+1, &commands[i], err)
					}
				}
				d.combined = combined
			}
			r := explain(d)
			if r == nil {
				unexplained = append(unexplained, d)
				continue
			}
			c.used = append(c.used, r)
			ends = ends || r.ends
		}
		if len(unexplained) > 0 || ends {
			break
		}
	}
	return c, unexplained, nil
}

func merged(a, b fields) fields {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func (c *comparison) close() {
	for s := range c.conns {
		for _, conn := range c.conns[s] {
			if conn != nil {
				_, _, _ = conn.command([]string{"LOGOUT"})
				_ = conn.conn.Close()
			}
		}
	}
}

// step sends a command to both servers, with NOOP as a barrier, and returns what the clients see.
func (c *comparison) step(cmd *command) (seen [2]fields, err error) {
	var errs [2]error
	var both sync.WaitGroup
	for s := range c.servers {
		both.Go(func() { seen[s], errs[s] = c.send(s, cmd) })
	}
	both.Wait()
	for s, err := range errs {
		if err != nil {
			return seen, fmt.Errorf("%s: %w", c.servers[s].name, err)
		}
	}
	return seen, c.learn(seen, cmd)
}

func (c *comparison) send(s int, cmd *command) (fields, error) {
	f := fields{}
	v := c.views[s][cmd.on]
	parts := make([]string, len(cmd.parts))
	for i, part := range cmd.parts {
		parts[i] = v.withMarks(part)
	}
	for _, one := range c.views[s] {
		one.before = maps.Clone(one.modSeqs)
	}
	if (cmd.name == "SELECT" || cmd.name == "EXAMINE") && !cmd.invalid {
		v.reset()
	}
	if err := c.exchange(s, cmd.on, parts, "", f); err != nil {
		return nil, err
	}
	if strings.HasSuffix(cmd.name, "STORE") && strings.Contains(parts[0], ".SILENT ") {
		v.forgetFlags(cmd.name == "UID STORE", strings.Fields(strings.TrimPrefix(parts[0], cmd.name))[0], f)
	}
	if f["status"] == "OK" {
		switch cmd.name {
		case "CLOSE", "UNSELECT":
			v.reset()
			for key := range f {
				if key != "status" && key != "code" {
					delete(f, key)
				}
			}
		}
	}
	barrier := fields{}
	if err := c.exchange(s, cmd.on, []string{"NOOP"}, "", barrier); err != nil {
		return nil, err
	}
	if barrier["status"] == "OK" {
		delete(barrier, "status")
	} else {
		f["barrier"] = barrier["status"]
		delete(barrier, "status")
	}
	if barrier["connection"] != "" {
		f = fields{}
	}
	maps.Copy(f, barrier)
	if err := c.exchange(s, 1-cmd.on, []string{"NOOP"}, "other: ", f); err != nil {
		return nil, err
	}
	return f, nil
}

// learn asks for what only one of two clients knows. A client with QRESYNC needs the UIDs of all messages, because VANISHED names UIDs. A server
// sends flags and ModSeqs that do not change with some commands, and the other one does not; the clients ask for those, so that the state of both
// servers can be compared from now on. The responses are not part of the observation, except that known flags are.
func (c *comparison) learn(seen [2]fields, cmd *command) error {
	for on := range c.conns[0] {
		prefix := ""
		if on != cmd.on {
			prefix = "other: "
		}
		views := [2]*view{c.views[0][on], c.views[1][on]}
		if !slices.Equal(views[0].messages, views[1].messages) { // it is a difference
			continue
		}
		for s, v := range views {
			if v.qresync && slices.ContainsFunc(v.messages, func(id int) bool { return v.uids[id] == "" }) {
				if _, err := c.ask(s, on, "FETCH 1:* UID"); err != nil {
					return err
				}
			}
			var flags, modSeqs []string
			for i, id := range v.messages {
				if _, knows := v.flags[id]; !knows && has(views[1-s].flags, id) {
					flags = append(flags, strconv.Itoa(i+1))
				}
				if _, knows := v.modSeqs[id]; !knows && has(views[1-s].modSeqs, id) {
					modSeqs = append(modSeqs, strconv.Itoa(i+1))
				}
			}
			for item, set := range map[string][]string{"FLAGS": flags, "MODSEQ": modSeqs} {
				if len(set) == 0 {
					continue
				}
				if _, err := c.ask(s, on, "FETCH "+strings.Join(set, ",")+" "+item); err != nil {
					return err
				}
			}
			if len(flags) > 0 {
				v.addFlags(prefix, seen[s])
			}
		}
	}
	return nil
}

// ask sends a command that is not part of the script. The client learns from the responses.
func (c *comparison) ask(s, on int, text string) ([]*response, error) {
	all, err := c.conns[s][on].ask(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.servers[s].name, err)
	}
	c.views[s][on].take(all, "", fields{})
	return all, nil
}

func has[V any](m map[int]V, id int) bool {
	_, is := m[id]
	return is
}

// withMarks puts ModSeqs into a command.
func (v *view) withMarks(part string) string {
	return strings.NewReplacer("$H", strconv.FormatUint(v.mark, 10), "$N", strconv.FormatUint(v.mark+1, 10)).Replace(part)
}

// exchange sends a command and adds what the client sees. It connects if there is no connection.
func (c *comparison) exchange(s, on int, parts []string, prefix string, f fields) error {
	conn := c.conns[s][on]
	if conn == nil {
		var err error
		if conn, err = dial(c.servers[s], c.users[s][0], c.users[s][1]); err != nil {
			return err
		}
		c.conns[s][on] = conn
	}
	all, ended, err := conn.command(parts)
	if err != nil {
		return err
	}
	c.views[s][on].take(all, prefix, f)
	if ended || slices.ContainsFunc(all, func(r *response) bool { return r.name == "BYE" }) {
		// The connection ends, whether the command was answered before or not (RFC 3501, section 7.1.5).
		maps.DeleteFunc(f, func(key, _ string) bool {
			return strings.HasPrefix(key, prefix) && (prefix != "" || !strings.HasPrefix(key, "other: "))
		})
		f[prefix+"connection"] = "ended"
		_ = conn.conn.Close()
		c.conns[s][on] = nil
		c.views[s][on] = newView()
	}
	return nil
}

// shorten removes commands from a script as long as a difference in the same field remains.
func shorten(ctx context.Context, servers [2]*server, commands []command, found *difference) ([]command, []*difference) {
	commands = commands[:found.step+1]
	differs := func(list []command) []*difference {
		_, unexplained, err := run(ctx, servers, list)
		if err != nil || !slices.ContainsFunc(unexplained, func(d *difference) bool {
			return d.step == len(list)-1 && field(d.key) == field(found.key)
		}) {
			return nil
		}
		return unexplained
	}
	last := differs(commands)
	for size := max(1, len(commands)/2); size > 0; size /= 2 {
		for from := 0; from+size < len(commands); {
			shorter := slices.Concat(commands[:from], commands[from+size:])
			if d := differs(shorter); d != nil {
				commands, last = shorter, d
			} else {
				from += size
			}
		}
	}
	return commands, last
}

// field returns a key without numbers, so that the field of another message counts as the same.
func field(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, key)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is not a number", name, text)
	}
	return n
}

// TestFanfareAnswersAsDovecotDoes compares the answers to random scripts.
func TestFanfareAnswersAsDovecotDoes(t *testing.T) {
	first, count := setting(t, "FANFARE_IMAP_SEED", 1), setting(t, "FANFARE_IMAP_SCRIPTS", 300)
	servers := [2]*server{startDovecot(t), startFanfare(t)}
	began := time.Now()
	var next, compared atomic.Uint64
	var mu sync.Mutex
	uses := map[*rule]int{}
	reported := map[string]int{}
	next.Store(first)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= first+count {
					return
				}
				commands := script(seed)
				c, unexplained, err := run(t.Context(), servers, commands)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					continue
				}
				compared.Add(uint64(c.compared))
				mu.Lock()
				for _, r := range c.used {
					uses[r]++
				}
				again := 0
				if len(unexplained) > 0 {
					key := unexplained[0].command.name + " " + field(unexplained[0].key)
					again = reported[key]
					reported[key]++
				}
				mu.Unlock()
				if len(unexplained) == 0 {
					continue
				}
				if again > 0 { // one script shows a kind of difference
					t.Errorf("seed %d: %s", seed, unexplained[0])
					continue
				}
				shortest, last := shorten(t.Context(), servers, commands, unexplained[0])
				if last == nil {
					t.Errorf("seed %d: the difference did not appear again: %s", seed, unexplained[0])
					continue
				}
				var text strings.Builder
				for i := range shortest {
					fmt.Fprintf(&text, "  %s\n", &shortest[i])
				}
				for _, d := range last {
					fmt.Fprintf(&text, "  %s\n", d)
				}
				t.Errorf("seed %d:\n%s", seed, &text)
			}
		})
	}
	workers.Wait()
	for i := range rules {
		t.Logf("rule %q explained %d differences", rules[i].name, uses[&rules[i]])
	}
	t.Logf("%d scripts from seed %d, %d commands in %v, %d rules", count, first, compared.Load(), time.Since(began).Round(time.Millisecond), len(rules))
}

func TestRulesQuoteAnRFC(t *testing.T) {
	if len(rules) > 24 { // with the 6 of doc.go
		t.Errorf("%d rules", len(rules))
	}
	for _, r := range rules {
		if !strings.HasPrefix(r.rfc, "RFC ") || !strings.Contains(r.rfc, ", section ") || r.sentence == "" || r.why == "" {
			t.Errorf("rule %q does not say which sentence of an RFC it relies on, and why", r.name)
		}
	}
}
