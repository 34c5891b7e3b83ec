package bench

import (
	"fanfare.dev/fanfare/internal/bench/compat"
	"fanfare.dev/fanfare/internal/bench/console"
	"fanfare.dev/fanfare/internal/bench/delivery"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/intake"
	"fanfare.dev/fanfare/internal/bench/mailboxes"
	"fanfare.dev/fanfare/internal/bench/matching"
	"fanfare.dev/fanfare/internal/bench/nodes"
	"fanfare.dev/fanfare/internal/bench/pipeline"
	"fanfare.dev/fanfare/internal/bench/rendering"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/bench/sessions"
)

// Experiments lists all experiments in the order in which the argument all runs
// them.
func Experiments() []harness.Experiment {
	return append([]harness.Experiment{
		{ID: "N1", Run: delivery.RunBroadcast, Published: report.Published{Value: 233, Text: "233/s, 71.5 min (NotifyBC, 2 x 1 core)"}, Shows: "a broadcast to 1,000,000 subscriptions with NotifyBC's filter: personal emails of 1 KB over 50 connections"},
		{ID: "N1b", Run: delivery.RunMixed, Shows: "N1 with 10,000 different filters, three overlapping subscriptions for every tenth person, 2 % of the emails refused once with 4xx, 1 % with 5xx"},
		{ID: "N1d", Run: delivery.RunSigned, Shows: "N1 with signed emails (DKIM): unsigned, Ed25519, and RSA-2048 with a tenth of the emails"},
		{ID: "N2", Run: nodes.RunTwo, NeedsDB: true, Published: report.Published{Value: 287, Text: "287/s, 5.8 min (NotifyBC, 2 nodes)"}, Shows: "N1 with 100,000 subscriptions through two nodes; the limit is one server"},
		{ID: "N3", Run: nodes.RunThree, NeedsDB: true, Published: report.Published{Value: 288, Text: "292/s with 2 nodes, 288/s with 3 (NotifyBC)"}, Shows: "N1 through two and three nodes; the limit is one server"},
		{ID: "N4", Run: intake.RunScript, Shows: "the same subscriptions by single POSTs, by 100 POSTs at a time (as NotifyBC's script does), and in bulk"},
		{ID: "N5", Run: delivery.RunRaw, Shows: "a raw SMTP sender to the same sink: prepared bytes, same size, same grouping (the limit of N1)"},
		{ID: "U1", Run: delivery.RunUrgentEvents, Shows: "one urgent event to one subscriber on an idle server, 2,000 times: p99 from the 202 to the bytes at the sink"},
		{ID: "U2", Run: delivery.RunUrgentMessages, Shows: "POST /v1/messages?wait=5s to one person on an idle server, 2,000 times: p99 from the request to the bytes at the sink"},
		{ID: "I1", Run: intake.RunImport, Shows: "bulk import of 1,000,000 subscriptions into an empty store"},
		{ID: "I2", Run: intake.RunImportMore, Shows: "bulk import of 1,000,000 subscriptions into a store of 10,000,000 (--base)"},
		{ID: "I3", Run: intake.RunPosts, Shows: "single POSTs of subscriptions over 50 connections"},
		{ID: "I4", Run: intake.RunEvents, Shows: "single POSTs of events over 50 connections"},
		{ID: "I4t", Run: intake.RunEventsOnTopics, Shows: "I4 with the events on 64 topics in turn"},
		{ID: "S1", Run: intake.RunSubscribers, Published: report.Published{Text: "more threads +50 to +100 %, update and delete slower than add (SSNS, shape)"}, Shows: "subscribers: load 100,000 into an empty server, then add, update and delete 10,000; over 1 and 50 connections"},
		{ID: "S2", Run: intake.RunSubscriptionSizes, Published: report.Published{Text: "decreases with the size (SSNS, shape)"}, Shows: "100,000 subscriptions of 20, 200 and 1,000 characters"},
		{ID: "S3", Run: intake.RunSubscriptionKinds, Published: report.Published{Text: "event-driven and scheduled nearly equal (SSNS, shape)"}, Shows: "100,000 subscriptions of 200 characters, event-driven and scheduled"},
		{ID: "E5", Run: intake.RunEventSizes, Published: report.Published{Text: "hundreds/s (SSNS, API provider)"}, Shows: "events over the API: 25 to 5,000 characters, 10,000 in a batch"},
		{ID: "E6", Run: intake.RunEventBatches, Published: report.Published{Text: "increases with the batch (SSNS, shape)"}, Shows: "events over the API: batches of 1 to 10,000, 250 characters"},
		{ID: "G1", Run: pipeline.RunGenerationBatches, Published: report.Published{Value: 1100, Text: "1,100 -> 950/s (SSNS); goal 2,000,000/s"}, Shows: "10,000 notifications in 1 to 32 batches, and a million: the rate at which they become durable"},
		{ID: "G2", Run: pipeline.RunGenerationThreads, Published: report.Published{Text: "best at one to two times the CPUs (SSNS, shape)"}, Shows: "eight rules for 2,500 people each, by the number of threads of the server"},
		{ID: "C1", Run: matching.RunMinutes, Published: report.Published{Value: 700, Text: "700/s with 3 distributors, < 2 min (SSNS, HTTP)"}, Shows: "the stock case: a quote for each of 1,000 symbols every minute, 200,000 people with five alerts each by four rules, by email"},
		{ID: "C2", Run: matching.RunTicks, Published: report.Published{Value: 20000, Text: "goal 20,000/s, p99 20 ms at half of it"}, Shows: "C1 at maximum speed: quotes/s into manifests, and the latency of a quote at half of the required 20,000/s"},
		{ID: "M1", Run: pipeline.RunBatchStages, Shows: "10,000 subscribers with one subscription each, one real batch: its time in each stage"},
		{ID: "D1", Run: rendering.RunMessages, Published: report.Published{Value: 450, Text: "400-500/s up to 500 B, 100-200/s at 2,000 B (SSNS); goal 300,000/s"}, Shows: "formatting messages of 25 to 2,000 characters without sending them, one thread"},
		{ID: "D2", Run: delivery.RunDrivers, Published: report.Published{Text: "File > HTTP > SMTP (SSNS, shape)"}, Shows: "5,000 messages into files, over HTTP and over SMTP, one connection"},
		{ID: "D3", Run: rendering.RunDigests, Published: report.Published{Text: "slower, worst at low ratios (SSNS, shape)"}, Shows: "formatting digests of 1 to 10 notifications of 200 characters without sending them, one thread"},
		{ID: "D4", Run: delivery.RunMulticast, Published: report.Published{Text: "large gain (SSNS, 2,000, shape); goal 100,000 recipients/s at 100"}, Shows: "emails with the same content to 200,000 people, 1 to 100 recipients in one transaction"},
		{ID: "D4r", Run: delivery.RunMulticastAtRate, Shows: "the same email to 1,000 people, 100 in one transaction, at 30/s up to no limit, over 1 and 8 connections, to a sink that replies immediately or after 400 ms: number of messages and duration"},
		{ID: "D5", Run: delivery.RunConnections, Published: report.Published{Text: "+25 to +50 % (SSNS, shape)"}, Shows: "a broadcast to 50,000 people over 1 to 8 connections"},
		{ID: "D6", Run: nodes.RunSlowReceivers, NeedsDB: true, Published: report.Published{Value: 700, Text: "250 -> 700/s with 1 to 3 distributors (SSNS, HTTP)"}, Shows: "webhooks to receivers that respond after 250 ms, 500 connections for each of one to three nodes that deliver: the rate by the number of nodes"},
		{ID: "P1", Run: delivery.RunBacklog, Published: report.Published{Value: 60, Text: "360,000 wait, 60 min to drain (SSNS, computed)"}, Shows: "300 messages a second for 30 minutes into a channel of 100 a second, with a simulated clock: time to drain the backlog"},
		{ID: "L1", Run: delivery.RunProvider, Published: report.Published{Value: 278, Text: "278/s (GOV.UK)"}, Shows: "83,333 emails through a provider that takes 250 ms per request and refuses requests above 360/s"},
		{ID: "L2", Run: delivery.RunBothStages, Published: report.Published{Text: "generation was the bottleneck (GOV.UK)"}, Shows: "generation alone, delivery alone, both"},
		{ID: "L4", Run: pipeline.RunGenerations, Shows: "500 changes a second for ten people each; manifests made for each change, in windows of 5 s and 1 s, and continuously"},
		{ID: "L6", Run: delivery.RunShare, Published: report.Published{Value: 360, Text: "300/s by share, 360/s shared (GOV.UK)"}, Shows: "the same provider: the rate in six shares, one of them unused, and the rate as one limit"},
		{ID: "L7", Run: delivery.RunConcurrency, Published: report.Published{Value: 360, Text: "120/s to 360/s (GOV.UK)"}, Shows: "the same provider: 30 and 90 connections, 100 and 250 ms"},
		{ID: "L9", Run: delivery.RunUrgentDuringBroadcast, Published: report.Published{Text: "stuck behind 1M (GOV.UK)"}, Shows: "an urgent message every 100 ms during a broadcast to 1,000,000: p99 from the 202 to the sink, and the rate of the broadcast with and without urgent messages in alternating phases"},
		{ID: "L9b", Run: delivery.RunSmallBesideLarge, Shows: "two services, each with a broadcast to 1,000,000 in progress: duration of a broadcast of a third service to 1,000 people"},
		{ID: "L10", Run: pipeline.RunDaily, Published: report.Published{Value: 60, Text: "goal 60 s, peak RSS 1 GB"}, Shows: "a daily digest of five events for 1,000,000 people at the same time of day: time until the last outcome"},
		{ID: "F1", Run: delivery.RunFailingDestinations(true), Shows: "webhooks to 10,000 receivers; of every hundred, one is dead, one is slow, and one refuses requests above 1/s: the rate to the healthy receivers with and without the others"},
		{ID: "F1m", Run: delivery.RunFailingDestinations(false), Shows: "F1 by email, for the domains behind one relay"},
		{ID: "H1", Run: pipeline.RunBroadcastHistory, Shows: "ten broadcasts to 1,000,000 people, then 1,000 random histories and traces: p99 of a history"},
		{ID: "H2", Run: pipeline.RunSingleHistory, Shows: "10,000,000 events to one person each, then 1,000 random histories and traces: p99 of a history"},
		{ID: "X1", Run: compat.RunSubscriptions, Published: report.Published{Text: "goal 0.8 of our own API"}, Shows: "single subscriptions over the NotifyBC API, 100 at once, beside our own API"},
		{ID: "X2", Run: compat.RunSends, Published: report.Published{Text: "goal 0.8 of our own API"}, Shows: "single emails over the API of GOV.UK Notify, 100 at once, beside our own API"},
		{ID: "X3", Run: compat.RunDistinct, Published: report.Published{Text: "goal 0.8 of our own API"}, Shows: "a broadcast over the NotifyBC API to 100,000 subscriptions with 1,000 different JMESPath filters, beside the same with CEL over our own API"},
		{ID: "X4", Run: compat.RunBroadcast, Published: report.Published{Text: "goal 0.8 of our own API"}, Shows: "N1 over the NotifyBC API, beside our own API"},
		{ID: "W1", Run: console.RunLists, Published: report.Published{Text: "goal p95 300 ms"}, Shows: "the web console with 10,000,000 deliveries, 1,000,000 subscribers, 200,010 events and 100,000 suppressions: the requests of each page, and each list at its beginning and at 10, 50 and 99 %; the p95 of the slowest"},
		{ID: "W2", Run: console.RunLive, Published: report.Published{Text: "goal 2 % of one core at rest"}, Shows: "N1 with ten browsers that show the page Now of the web console: the CPU time of the server at rest, with and without them, and the rate with them"},
		{ID: "RB1", Run: delivery.RunReturns, Shows: "100,000 bounces arrive by email at 2,000/s during a broadcast to 500,000: each counts once, and no suppressed address gets an email more than 1 s after its bounce"},
		{ID: "K1", Run: nodes.RunLinks, NeedsDB: true, Shows: "N1 through one server, one node, three nodes, and a leader for which one, two and three other nodes deliver: rates, and the CPU time of each process per email"},
		{ID: "K2", Run: nodes.RunSlowRelay, NeedsDB: true, Shows: "the broadcast of N2 and N3 to a next hop that replies after 250 ms, 500 connections for each of one to three nodes that deliver: the rate by the number of nodes"},
		{ID: "K3", Run: nodes.RunSharedRate, NeedsDB: true, Shows: "a channel with 350/s through two nodes, one of which is replaced during the broadcast, to a next hop that refuses emails above 360/s: the rate and the share of refused emails"},
		{ID: "K4", Run: matching.RunMinutesOnNodes, NeedsDB: true, Shows: "C1 for 200,000 people per delivering node, with one to three nodes, to a next hop that replies after 250 ms, 500 connections for each node: the rate by the number of nodes"},
		{ID: "T1", Run: sessions.RunThroughput, Published: report.Published{Value: 15_653, Text: "15,653/s interactive, 752/s durable (Telepathy, 100,000 requests); goal 300,000/s and 50,000/s"}, Shows: "1,000,000 requests of 4 bytes from 8 clients through an interactive session, fewer through a durable one, and by the size from 4 B to 1 MB: end to end"},
		{ID: "T2", Run: sessions.RunLatency, Published: report.Published{Value: 98.6, Text: "98.6 ms interactive, 1,435 ms durable (Telepathy); goal p99 1 ms"}, Shows: "one client with one request at a time, after 20 s without any: the latency of the first response and of 1,000 requests"},
		{ID: "T3", Run: sessions.RunEfficiency, Published: report.Published{Value: 99.6, Text: "99.6 % interactive, 92.6 % durable (Telepathy); goal 99.95 %"}, Shows: "160 requests of 3,000 ms on 8 instances: the share of their time that the instances work"},
		{ID: "T4", Run: sessions.RunEndurance, Published: report.Published{Text: "goal: flat memory"}, Shows: "an hour at 20,000 requests/s, with an additional client in every second minute that reads 100 responses/s: the highest memory of the server in the last quarter, its growth, and the latency with and without the slow client"},
		{ID: "T5", Run: sessions.RunReread, Published: report.Published{Text: "goal 100,000/s"}, Shows: "10,000,000 responses of a durable session, read again after a restart of the server: in pages through the API, and over the stream"},
		{ID: "J1", Run: mailboxes.RunAccepting, Published: report.Published{Value: 29_924, Text: "29,924 in 5 min (James)"}, Shows: "100 senders for 5 minutes, each with one mail per new connection and a pause of 1 s: mails accepted, each durable in its mailbox"},
		{ID: "J2", Run: mailboxes.RunDraining, Published: report.Published{Value: 65, Text: "65/s (James)"}, Shows: "the mails of J1 without pauses: the rate at which they get into mailboxes"},
		{ID: "J3", Run: mailboxes.RunDelivery, Published: report.Published{Value: 10_000, Text: "goal 10,000/s"}, Shows: "mails over LMTP by smtp-source into mailboxes, each durable before its 250; the same into Dovecot, and through Postfix, if they are installed"},
		{ID: "J4", Run: mailboxes.RunUsers, Published: report.Published{Text: "goal p99 5 ms, 1 GB"}, Shows: "1,000, 3,000 and 10,000 users of IMAP with 2 to 18 s between their commands: commands/s, latency, memory; the same 3,000 users of Dovecot, if it is installed"},
		{ID: "J5", Run: mailboxes.RunJMAPUsers, Published: report.Published{Value: 704, Text: "704/s, p50 21 ms, p99 560 ms (James, 10,000 users on 3 nodes); goal p99 50 ms"}, Shows: "1,000 and 10,000 users of JMAP with 20 to 40 s between their actions: requests/s and latency"},
		{ID: "J6", Run: mailboxes.RunBroadcast, Published: report.Published{Value: 200_000, Text: "goal 200,000/s"}, Shows: "a broadcast into 1,000,000 inboxes: from the event to the last durable outcome"},
		{ID: "R1", Run: intake.RunIdle, Shows: "time from start to ready with 1,000,000 subscriptions; memory and CPU of an idle server"},
	}, matching.Experiments()...)
}
