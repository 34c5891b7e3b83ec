//! The official CloudEvents SDK publishes in every mode, and the events arrive.
//!
//! Every request is written by the SDK as a whole, the batch too.

use cloudevents::binding::reqwest::{RequestBuilderExt, RequestSerializer};
use cloudevents::message::StructuredDeserializer;
use cloudevents::{AttributesReader, Data, Event, EventBuilder, EventBuilderV03, EventBuilderV10};
use fanfare_cloudevents::{Server, eventually};
use reqwest::{Method, Request, RequestBuilder};
use serde_json::{Value, json};

const TIME: &str = "2026-03-29T01:30:00.25Z";

fn desk(mode: &str) -> Server {
    let server = Server::start(mode);
    server.call(
        Method::POST,
        "/v1/apply",
        json!({
            "service": mode,
            "channels": {"email": {"driver": "smtp", "relay": server.relay, "from": "desk@example.org", "rate": "unlimited"}},
            "topics": {"note": {"template": "note"}},
            "templates": {"note": {"subject": "{{ meta.id }}", "text": "{{ meta.extensions.team }}"}},
        }),
    );
    server.call(Method::PUT, "/v1/subscriptions/all", json!({"topic": "note", "channel": "email", "to": "reader@example.org"}));
    server
}

/// An event for each kind of data that the SDK knows.
fn events(mode: &str) -> Vec<Event> {
    let event = |number: u8| {
        EventBuilderV10::new()
            .id(format!("{mode} {number}"))
            .source(format!("/rust/{mode}"))
            .ty("note")
            .subject("100% \"sure\"")
            .time(TIME)
            .extension("team", "kitchen")
            .extension("weight", 7)
            .extension("hot", true)
    };
    [
        event(1).data("application/json", json!({"title": "grüß dich", "n": 1.5})),
        event(2).data("text/plain", "two\nlines"),
        event(3).data("image/png", b"\x89PNG\xff\x00".to_vec()),
        event(4),
    ]
    .map(|event| event.build().unwrap())
    .into()
}

type Write = fn(&dyn Fn() -> RequestBuilder, Vec<Event>) -> Vec<RequestBuilder>;

fn structured(post: &dyn Fn() -> RequestBuilder, events: Vec<Event>) -> Vec<RequestBuilder> {
    events.into_iter().map(|event| event.deserialize_structured(RequestSerializer::new(post())).unwrap()).collect()
}

fn binary(post: &dyn Fn() -> RequestBuilder, events: Vec<Event>) -> Vec<RequestBuilder> {
    events.into_iter().map(|event| post().event(event).unwrap()).collect()
}

fn batched(post: &dyn Fn() -> RequestBuilder, events: Vec<Event>) -> Vec<RequestBuilder> {
    vec![post().events(events).unwrap()]
}

fn requests(server: &Server, write: Write, events: Vec<Event>) -> Vec<Request> {
    let post = || server.request(Method::POST, "/v1/events");
    write(&post, events).into_iter().map(|request| request.build().unwrap()).collect()
}

/// What the server says of each event.
fn kept(server: &Server, requests: Vec<Request>) -> Vec<Value> {
    let answers = requests.into_iter().map(|request| {
        let (status, answer) = server.send(request);
        assert_eq!(status, 202, "{answer}");
        answer["events"].as_array().unwrap().clone()
    });
    answers.flatten().collect()
}

fn events_arrive_whole(mode: &str, write: Write, content_types: &[Option<&str>]) {
    let server = desk(mode);
    let sent = events(mode);
    let messages = requests(&server, write, sent.clone());
    let headers = |name| messages.iter().map(|m| m.headers().get(name).map(|v| v.to_str().unwrap())).collect::<Vec<_>>();
    assert_eq!(headers("content-type"), content_types);
    assert!(headers("ce-specversion").iter().all(|v| v.is_some() == (mode == "binary")));

    let first = kept(&server, messages);
    assert_eq!(first.len(), sent.len());
    assert!(first.iter().all(|k| k["duplicate"] == false), "{first:?}");
    let again = kept(&server, requests(&server, write, sent.clone()));
    assert_eq!(again.len(), sent.len());
    for (a, b) in again.iter().zip(&first) {
        assert!(a["duplicate"] == true && a["id"] == b["id"], "{a} {b}");
    }
    eventually("a mail for each", || (server.arrived() == sent.len()).then_some(()));

    for (event, kept) in sent.iter().zip(&first) {
        let path = format!("/v1/events/{}", kept["id"].as_str().unwrap());
        // The outcome is recorded after the mail server took the mail.
        let trace = eventually("its broadcast is completed", || {
            Some(server.call(Method::GET, &path, Value::Null)).filter(|trace| trace["state"] == "completed")
        });
        assert_eq!(trace["messages"], 1);
        assert_eq!(trace["sourceid"], event.id());
        assert_eq!(trace["source"], event.source().as_str());
        assert_eq!(trace["type"], event.ty());
        assert_eq!(trace["subject"], event.subject().unwrap());
        assert_eq!(trace["time"], TIME);
        // Headers have no types; the JSON format does.
        let (weight, hot) = if mode == "binary" { (json!("7"), json!("true")) } else { (json!(7), json!(true)) };
        assert_eq!(trace["extensions"], json!({"team": "kitchen", "weight": weight, "hot": hot}));
        let (data, base64) = match event.data() {
            Some(Data::Json(value)) => (value.clone(), Value::Null),
            Some(Data::String(text)) => (json!(text), Value::Null),
            Some(Data::Binary(_)) => (Value::Null, json!(["iVBO", "R/8A"].concat())),
            None => (Value::Null, Value::Null),
        };
        assert_eq!((&trace["data"], &trace["data_base64"]), (&data, &base64));
    }
}

#[test]
fn events_arrive_whole_structured() {
    events_arrive_whole("structured", structured, &[Some("application/cloudevents+json"); 4]);
}

#[test]
fn events_arrive_whole_binary() {
    events_arrive_whole("binary", binary, &[Some("application/json"), Some("text/plain"), Some("image/png"), None]);
}

#[test]
fn events_arrive_whole_batched() {
    events_arrive_whole("batched", batched, &[Some("application/cloudevents-batch+json")]);
}

#[test]
fn a_bad_member_refuses_the_batch() {
    let server = desk("half");
    let good = EventBuilderV10::new().id("1").source("/rust").ty("note").build().unwrap();
    let old = EventBuilderV03::new().id("2").source("/rust").ty("note").build().unwrap();
    let batch = requests(&server, batched, vec![good.clone(), old]).remove(0);
    let (status, problem) = server.send(batch);
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/1/specversion")));
    // The good one was not taken either: alone it is new.
    assert_eq!(kept(&server, requests(&server, batched, vec![good]))[0]["duplicate"], false);
}
