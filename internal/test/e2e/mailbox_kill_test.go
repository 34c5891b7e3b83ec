package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// newestListener returns the address of a listener that the log of the last run names.
func (s *server) newestListener(pattern string) string {
	s.t.Helper()
	all := regexp.MustCompile(pattern+`.* listen=(\S+)`).FindAllStringSubmatch(s.logged(), -1)
	if len(all) == 0 {
		s.t.Fatalf("the log names no %s", pattern)
	}
	return all[len(all)-1][1]
}

// acknowledged collects which messages were acknowledged for whom.
type acknowledged struct {
	mu     sync.Mutex
	of     map[string]map[string]bool // by person, by subject
	enough int                        // left until the server is killed
	kill   func()
}

func (a *acknowledged) add(person, subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[person] == nil {
		a.of[person] = map[string]bool{}
	}
	a.of[person][subject] = true
	if a.enough--; a.enough == 0 {
		a.kill()
	}
}

// deliver sends messages to two people each over LMTP until the connection breaks, each message once.
func (a *acknowledged) deliver(at, sender string, people []string, random *rand.Rand) {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", at)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	reply := func() string {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return ""
			}
			if len(line) > 3 && line[3] == ' ' {
				return line[:3]
			}
		}
	}
	if reply() != "220" {
		return
	}
	if _, err := fmt.Fprint(conn, "LHLO sender.example.com\r\n"); err != nil || reply() != "250" {
		return
	}
	for n := 0; ; n++ {
		subject := fmt.Sprintf("%s-%d", sender, n)
		first := random.IntN(len(people))
		to := []string{people[first], people[(first+1)%len(people)]}
		if _, err := fmt.Fprintf(conn, "MAIL FROM:<>\r\nRCPT TO:<%s@example.org>\r\nRCPT TO:<%s@example.org>\r\nDATA\r\n", to[0], to[1]); err != nil {
			return
		}
		for _, want := range []string{"250", "250", "250", "354"} {
			if reply() != want {
				return
			}
		}
		if _, err := fmt.Fprintf(conn, "Subject: %s\r\n\r\n%s\r\n.\r\n", subject, strings.Repeat("body ", random.IntN(500))); err != nil {
			return
		}
		for _, person := range to {
			switch reply() {
			case "250":
				a.add(person, subject)
			case "":
				return
			}
		}
	}
}

// inboxOf returns the subjects in an inbox by their UID, and its UIDVALIDITY, over IMAP.
func (s *server) inboxOf(person, password string) (subjects map[string]string, validity string) {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.newestListener("over IMAP"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "a LOGIN %s@example.org %s\r\nb EXAMINE INBOX\r\nc UID FETCH 1:* (UID BODY.PEEK[HEADER.FIELDS (SUBJECT)])\r\nd LOGOUT\r\n", person, password); err != nil {
		s.t.Fatal(err)
	}
	subjects = map[string]string{}
	fetched, valid := regexp.MustCompile(`^\* \d+ FETCH \(.*UID (\d+)`), regexp.MustCompile(`UIDVALIDITY (\d+)`)
	uid, done := "", false
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		line := lines.Text()
		if found := fetched.FindStringSubmatch(line); found != nil {
			uid = found[1]
		}
		if found := valid.FindStringSubmatch(line); found != nil {
			validity = found[1]
		}
		if subject, ok := strings.CutPrefix(line, "Subject: "); ok {
			subjects[uid] = subject
		}
		done = done || strings.HasPrefix(line, "c OK")
	}
	if !done || validity == "" {
		s.t.Fatalf("the inbox of %s could not be read: %v", person, lines.Err())
	}
	return subjects, validity
}

// A server that is killed again and again while it takes mail over LMTP has each message that it acknowledged, once, with the UID that it had.
func TestAcknowledgedMailSurvivesKills(t *testing.T) {
	t.Parallel()
	s := serve(t, "--durability", "fsync", "--lmtp-listen", "127.0.0.1:0", "--imap-listen", "127.0.0.1:0")
	s.http.must(200, "POST", "/v1/apply", "application/yaml", "service: news\n")
	people, passwords := []string{"ann", "bob", "carl", "dora", "emil"}, map[string]string{}
	for _, name := range people {
		s.http.must(201, "PUT", "/v1/subscribers/"+name, "application/json", `{"addresses":[{"kind":"mail","address":"`+name+`@example.org"}]}`)
		var made struct{ Password string }
		if err := json.Unmarshal([]byte(s.http.must(201, "POST", "/v1/mailboxes/"+name+"@example.org/app-passwords", "application/json", "{}")), &made); err != nil {
			t.Fatal(err)
		}
		passwords[name] = made.Password
	}
	random := rand.New(rand.NewPCG(23, 1))
	all := &acknowledged{of: map[string]map[string]bool{}}
	known, validities := map[string]map[string]string{}, map[string]string{}
	const rounds, senders = 4, 6
	for round := range rounds {
		process := s.cmd.Process
		all.enough, all.kill = 1+random.IntN(150), func() { _ = process.Kill() }
		at := s.newestListener(`listener=lmtp\b`)
		var running sync.WaitGroup
		for i := range senders {
			seeded := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			running.Go(func() { all.deliver(at, fmt.Sprintf("%d-%d", round, i), people, seeded) })
		}
		running.Wait()
		<-s.gone
		s.start()
		for _, name := range people {
			subjects, validity := s.inboxOf(name, passwords[name])
			if round > 0 && validity != validities[name] {
				t.Errorf("round %d: the UIDVALIDITY of %s became %s", round, name, validity)
			}
			validities[name] = validity
			for uid, subject := range known[name] {
				if subjects[uid] != subject {
					t.Errorf("round %d: UID %s of %s was %q and is %q", round, uid, name, subject, subjects[uid])
				}
			}
			count := map[string]int{}
			for _, subject := range subjects {
				if count[subject]++; count[subject] == 2 {
					t.Errorf("round %d: %s has %q twice", round, name, subject)
				}
			}
			for subject := range all.of[name] {
				if count[subject] == 0 {
					t.Errorf("round %d: %q was acknowledged for %s and is lost", round, subject, name)
				}
			}
			known[name] = maps.Clone(subjects)
		}
	}
	for _, name := range people {
		if len(all.of[name]) == 0 {
			t.Errorf("%s got no mail, so the test shows nothing", name)
		}
	}
}
