package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) nodesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "nodes", Short: "List the nodes of the cluster",
		Long: `List the nodes of the cluster. One node is the leader: it processes all events and decides
when each message is sent. The others forward requests to it. ROLE shows what else a node
does:

  standby    it takes over when the leader stops or fails
  delivers   it sends messages; CONNECTIONS is the number of its open connections to
             relays and receivers
  matches    it evaluates conditions for the leader
  forwards   none of these: it has the role api, or no link to the leader

A node is shown as "not responding" after 15 seconds without a heartbeat, and is listed
for 24 hours. A node that was stopped is not listed.

LAST SEEN is the time since the last heartbeat; a node sends one every two seconds.
CLOCK is how far the clock of the node is ahead of the clock of the database; a
negative value means that it is behind.

The last line counts the NATS servers that have a complete copy of the bus, which holds
the events and batches in progress. With 1 copy, the failure of that server stops the
cluster.

The command needs an operator key, such as the one in admin.key.`,
		Example: `  fanfare nodes
  fanfare nodes --json | jq -r '.nodes[] | select(.leader) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			nodes, err := api.Nodes(command.Context())
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(nodes)
			}
			c.printNodes(nodes)
			return nil
		},
	}
}

func (c *cli) printNodes(all client.Nodes) {
	if !all.Clustered {
		fmt.Fprintln(c.out, "the server is not a node of a cluster; to make it one, set node in its configuration")
		return
	}
	table := c.newTable()
	fmt.Fprintln(table, "NAME\tROLE\tCONNECTIONS\tVERSION\tURL\tSTARTED\tLAST SEEN\tCLOCK")
	for i := range all.Nodes {
		n := &all.Nodes[i]
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", n.Name, roleText(n), n.Connections, n.Version, n.URL, n.StartedAt.Local().Format(time.DateTime), silentText(n.SilentSeconds), skewText(n.ClockSkewMS))
	}
	table.Flush()
	if all.Bus != nil {
		fmt.Fprintf(c.out, "\nbus: %s, %s\n", copiesText(all.Bus), syncText(all.Bus))
	}
}

// copiesText counts the copies of the bus.
func copiesText(b *client.BusCopies) string {
	where := "external NATS"
	if b.Embedded {
		where = "embedded NATS"
	}
	if b.Replicas < 2 {
		return "1 copy, not highly available, " + where
	}
	return fmt.Sprintf("%d of %d copies are current, %s", b.Current, b.Replicas, where)
}

// syncText says when the NATS servers sync.
func syncText(b *client.BusCopies) string {
	switch b.Sync {
	case "always":
		return "synced before each acknowledgement"
	case "interval":
		return "synced at intervals"
	}
	return "sync mode not checked"
}

func roleText(n *client.Node) string {
	var roles []string
	if n.Leader {
		roles = append(roles, "leader")
	} else if n.CanLead() {
		roles = append(roles, "standby")
	}
	if n.Delivers {
		roles = append(roles, "delivers")
	}
	if n.Matches {
		roles = append(roles, "matches")
	}
	if len(roles) == 0 {
		roles = append(roles, "forwards")
	}
	if !n.Responding {
		roles = append(roles, "not responding")
	}
	return strings.Join(roles, ", ")
}

// silentText is the time since the last heartbeat.
func silentText(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.0f s ago", math.Floor(seconds))
	}
	return (time.Duration(seconds) * time.Second).String() + " ago"
}

// skewText is the difference between two clocks.
func skewText(millis float64) string {
	if math.Abs(millis) < 1000 {
		return fmt.Sprintf("%+.0f ms", millis)
	}
	return fmt.Sprintf("%+.1f s", millis/1000)
}

// clusterText names the leader and counts the standbys.
func clusterText(s *client.ClusterStatus) string {
	text := "no leader"
	if s.Leader != "" {
		text = s.Leader + " leads"
	}
	switch s.Standbys {
	case 0:
		text += ", no standby responds"
	case 1:
		text += ", 1 standby responds"
	default:
		text += fmt.Sprintf(", %d standbys respond", s.Standbys)
	}
	if s.Bus != nil {
		text += "; bus: " + copiesText(s.Bus)
	}
	if len(s.Silent) > 0 {
		text += "; not responding: " + strings.Join(s.Silent, ", ")
	}
	return text
}
