//! The real program: a server and a capture server for each test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use reqwest::{Client, Method, Request, RequestBuilder};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// It decides only how long a failure takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what `look` finds.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "did not come about: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Both run until it is dropped.
pub struct Server {
    /// Where the capture server takes mail.
    pub relay: String,
    url: String,
    key: String,
    service: String,
    client: Client,
    runtime: Runtime,
    _processes: [Process; 2],
    folder: Folder, // the last: fields are dropped in this order
}

impl Server {
    /// Starts both. Its requests are for `service`, which also tells the tests of one run apart.
    pub fn start(service: &str) -> Server {
        let folder = Folder::new(service);
        let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
        let (sink, relay) =
            Process::start(&folder.0, "sink", "takes mail at ", &["--smtp", "127.0.0.1:0", "--record", &path("record"), "--record-sync"]);
        let (serve, url) = Process::start(
            &folder.0,
            "serve",
            "listens on ",
            &["--listen", "127.0.0.1:0", "--data-dir", &path("data"), "--durability", "relaxed", "--disk-floor", "0"],
        );
        Server {
            relay,
            url,
            key: fs::read_to_string(path("data/admin.key")).unwrap().trim().to_owned(),
            service: service.to_owned(),
            client: Client::builder().no_proxy().timeout(PATIENCE).build().unwrap(),
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            _processes: [serve, sink],
            folder,
        }
    }

    /// A request with the key and the service, still without a body.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key).header("x-fanfare-service", &self.service)
    }

    /// The status and the body of the answer.
    pub fn send(&self, request: Request) -> (u16, Value) {
        self.runtime.block_on(async {
            let answer = self.client.execute(request).await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{status}: {e}: {text}")))
        })
    }

    /// The answer to a call that has to succeed; a body of null is none.
    pub fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let mut request = self.request(method, path);
        if !body.is_null() {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let (status, answer) = self.send(request.build().unwrap());
        assert!(status < 300, "{path}: {status}: {answer}");
        answer
    }

    /// The number of mails at the capture server.
    pub fn arrived(&self) -> usize {
        fs::read_to_string(self.folder.0.join("record")).unwrap().lines().count()
    }
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("fanfare-sdk-{}-{name}", process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its owner.
struct Process(Child);

impl Process {
    /// Starts `fanfare name arguments...` and returns the word that it says after `before`.
    fn start(folder: &Path, name: &str, before: &str, arguments: &[&str]) -> (Process, String) {
        let log = folder.join(format!("{name}.log"));
        let out = fs::File::create(&log).unwrap();
        let child = Command::new(binary())
            .arg(name)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        let mut process = Process(child);
        let found = eventually(&format!("{name} listens"), || {
            let ended = process.0.try_wait().unwrap();
            let text = fs::read_to_string(&log).unwrap();
            assert!(ended.is_none(), "{name} ended: {text}");
            let (word, _) = text.split_once(before)?.1.split_once(char::is_whitespace)?;
            Some(word.to_owned())
        });
        (process, found)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn binary() -> PathBuf {
    env::var_os("FANFARE_BINARY").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bin/fanfare"), PathBuf::from)
}
