//! The requests that `umbel guard serve` answers.
//!
//! A web page of another site can send requests to this machine, from a browser that runs here. So the name in `Host` must be one
//! of the server's, which a name that was only pointed here (DNS rebinding) is not, and a request with an `Origin` must come
//! from the server's own pages. If there is a token, every request needs it, whatever its path is.

use super::token::Token;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;
use umbel_guard::{Answer, DataSet, Guard, GuardError, Local, Refusal};

/// The longest key.
const KEY: usize = 4 << 10;

/// Which requests come in.
pub(super) struct Door {
    /// The names that a request may be for; any, if there are none.
    pub(super) hosts: Option<Vec<String>>,
    pub(super) token: Option<Token>,
    /// Whether nothing may be written.
    pub(super) read_only: bool,
}

impl Door {
    fn is_ours(&self, host: &HeaderValue) -> bool {
        let host = host.to_str().unwrap_or_default().to_lowercase();
        self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&host))
    }
}

/// What all requests share.
pub(super) struct App<D: DataSet> {
    guard: Guard<D, Local>,
    door: Door,
    /// The largest value, and how long it may take to arrive.
    limit: usize,
    time: Duration,
}

impl<D: DataSet> App<D> {
    pub(super) fn new(guard: Guard<D, Local>, door: Door, limit: usize, time: Duration) -> Self {
        Self { guard, door, limit, time }
    }
}

type Shared<D> = State<Arc<App<D>>>;

pub(super) fn router<D: DataSet>(app: Arc<App<D>>) -> Router {
    let keys = get(look_up::<D>).put(put::<D>).delete(delete::<D>);
    Router::new()
        .route("/keys/{*key}", keys)
        .route("/metrics", get(metrics::<D>))
        .route("/state", get(state::<D>))
        .layer(from_fn_with_state(app.clone(), let_in::<D>))
        .with_state(app)
}

/// Refuses requests for other servers, from other sites, without the token, and writes where nothing may be written.
async fn let_in<D: DataSet>(State(app): Shared<D>, request: Request, next: Next) -> Response {
    let (headers, door) = (request.headers(), &app.door);
    let host = headers.get(header::HOST);
    // A request can name its server in the target as well, and a client may send two names.
    let target = request.uri().authority().map(|name| name.as_str().parse());
    let others = target.is_some_and(|name| !name.is_ok_and(|name| door.is_ours(&name)))
        || headers.get_all(header::HOST).iter().any(|host| !door.is_ours(host));
    if door.hosts.is_some() && (host.is_none() || others) {
        return refused(
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header is not a name of this server; --host NAME adds one",
        );
    }
    let origin = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
        host.and_then(|host| host.parse().ok()).is_some_and(|host| door.is_ours(&host))
    };
    let foreign = HeaderMap::get_all(headers, header::ORIGIN).iter().any(|from| !origin(from));
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if foreign || site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return refused(StatusCode::FORBIDDEN, "cross-origin request refused");
    }
    if door.token.as_ref().is_some_and(|token| !token.is_in(headers)) {
        let how = [(header::WWW_AUTHENTICATE, "Bearer")];
        let why = "expected the token of this server: Authorization: Bearer TOKEN\n";
        return (StatusCode::UNAUTHORIZED, how, why).into_response();
    }
    if door.read_only && !matches!(*request.method(), Method::GET | Method::HEAD) {
        let allowed = [(header::ALLOW, "GET, HEAD")];
        let why = "this server is read-only (--read-only): nothing was changed\n";
        return (StatusCode::METHOD_NOT_ALLOWED, allowed, why).into_response();
    }
    next.run(request).await
}

fn refused(status: StatusCode, why: &'static str) -> Response {
    (status, format!("{why}\n")).into_response()
}

/// The bytes behind `/keys/`.
fn key_of(uri: &Uri) -> Result<Vec<u8>, &'static str> {
    let path = uri.path().strip_prefix("/keys/").unwrap_or_default();
    if uri.query().is_some() {
        return Err("a question mark in a key is written %3F");
    }
    match decoded(path) {
        None => Err("behind % are two hexadecimal digits"),
        Some(key) if key.is_empty() || key.len() > KEY => Err("a key has 1 to 4096 bytes"),
        Some(key) => Ok(key),
    }
}

/// Text with `%41` for bytes.
fn decoded(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [char::from(rest.next()?), char::from(rest.next()?)];
            let [high, low] = digits.map(|digit| digit.to_digit(16));
            bytes.push(u8::try_from(high? * 16 + low?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

/// The answer to a request that failed; the statuses are in docs/guard.md.
fn failed<D: DataSet>(app: &App<D>, error: &GuardError<D::Error>) -> Response {
    let status = match error {
        GuardError::DataSet(why) => match app.guard.data_set().refusal(why) {
            Some(Refusal::Conflict) => StatusCode::CONFLICT,
            Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
            None => StatusCode::BAD_GATEWAY,
        },
        GuardError::Journal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        GuardError::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        GuardError::Busy { .. }
        | GuardError::Closed
        | GuardError::Superseded
        | GuardError::Untended => StatusCode::SERVICE_UNAVAILABLE,
        GuardError::ReadOnly => {
            let allowed = [(header::ALLOW, "GET, HEAD")];
            return (StatusCode::METHOD_NOT_ALLOWED, allowed, format!("{error}\n")).into_response();
        }
        _ => StatusCode::BAD_GATEWAY,
    };
    (status, format!("{error}\n")).into_response()
}

fn named(answer: Answer) -> HeaderValue {
    HeaderValue::from_static(match answer {
        Answer::Absent => "absent",
        Answer::Maybe => "maybe",
        Answer::Unknown(_) => "unknown",
    })
}

async fn look_up<D: DataSet>(State(app): Shared<D>, OriginalUri(uri): OriginalUri) -> Response {
    let key = match key_of(&uri) {
        Ok(key) => key,
        Err(why) => return refused(StatusCode::BAD_REQUEST, why),
    };
    let (answer, got) = app.guard.get_answered(&key).await;
    let mut response = match got {
        Ok(Some(value)) => {
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            (kind, Bytes::from(value)).into_response()
        }
        Ok(None) => refused(StatusCode::NOT_FOUND, "there is no such key"),
        Err(error) => failed(&app, &error),
    };
    response.headers_mut().insert("umbel-answer", named(answer));
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn put<D: DataSet>(
    State(app): Shared<D>,
    OriginalUri(uri): OriginalUri,
    body: Body,
) -> Response {
    let key = match key_of(&uri) {
        Ok(key) => key,
        Err(why) => return refused(StatusCode::BAD_REQUEST, why),
    };
    let value = match tokio::time::timeout(app.time, to_bytes(body, app.limit)).await {
        Ok(Ok(value)) => value,
        Ok(Err(_)) => {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "the value is too large, or broke off");
        }
        Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "the value did not come in time"),
    };
    match app.guard.put(&key, &value).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => failed(&app, &error),
    }
}

async fn delete<D: DataSet>(State(app): Shared<D>, OriginalUri(uri): OriginalUri) -> Response {
    let key = match key_of(&uri) {
        Ok(key) => key,
        Err(why) => return refused(StatusCode::BAD_REQUEST, why),
    };
    match app.guard.delete(&key).await {
        Ok(true) => StatusCode::NO_CONTENT.into_response(),
        Ok(false) => refused(StatusCode::NOT_FOUND, "there is no such key"),
        Err(error) => failed(&app, &error),
    }
}

async fn metrics<D: DataSet>(State(app): Shared<D>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, app.guard.stats().to_prometheus()).into_response()
}

async fn state<D: DataSet>(State(app): Shared<D>) -> Response {
    format!("{}\n", app.guard.state()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bytes_however_they_are_written() {
        assert_eq!(decoded("a%2Fb/c").unwrap(), b"a/b/c");
        assert_eq!(decoded("%00%ff").unwrap(), b"\x00\xff");
        for broken in ["%", "%4", "%zz", "a%"] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }
}
