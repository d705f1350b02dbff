//! The provider's client, made from an address and what the host handed in.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use super::options::BucketOptions;
use crate::{Bucket, Provider, StoreError};

/// A server that is there takes a connection much faster.
const CONNECT: Duration = Duration::from_secs(5);
const CONNECT_FOR_CREDENTIALS: Duration = Duration::from_secs(1);
/// The longest that a connection may say nothing, a part on its way up included.
const SILENCE: Duration = Duration::from_secs(60);
/// A second and a third try, within so long.
const RETRIES: usize = 2;
const RETRY_WITHIN: Duration = Duration::from_secs(15);

/// Makes the client. Nothing is connected yet.
pub(super) fn client(bucket: &Bucket, options: &BucketOptions) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let client_options = ClientOptions::new().with_allow_http(allow_http(bucket, options)?);
    let connector = Connector::of(options);
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_WITHIN,
        backoff: BackoffConfig::default(),
    };
    let url = bucket.root_url();
    let made: object_store::Result<Arc<dyn ObjectStore>> = match bucket.provider {
        Provider::S3 => {
            let mut builder = AmazonS3Builder::new().with_client_options(client_options).with_url(url);
            for (key, value) in known::<AmazonS3ConfigKey>(options) {
                builder = builder.with_config(key, value);
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
            }
            if let Some(region) = &options.region {
                builder = builder.with_region(region);
            }
            let made = builder.with_retry(retry).with_http_connector(connector).build();
            made.map(|client| Arc::new(client) as _)
        }
        Provider::Google => {
            let mut builder = GoogleCloudStorageBuilder::new()
                .with_client_options(client_options)
                .with_url(url);
            for (key, value) in known::<GoogleConfigKey>(options) {
                builder = builder.with_config(key, value);
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_config(GoogleConfigKey::BaseUrl, endpoint);
            }
            let made = builder.with_retry(retry).with_http_connector(connector).build();
            made.map(|client| Arc::new(client) as _)
        }
        Provider::Azure => {
            let mut builder = MicrosoftAzureBuilder::new()
                .with_client_options(client_options)
                .with_url(url);
            for (key, value) in known::<AzureConfigKey>(options) {
                // It would start a program, and only the executor starts anything.
                if !matches!(key, AzureConfigKey::UseAzureCli) {
                    builder = builder.with_config(key, value);
                }
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_endpoint(endpoint.clone());
            }
            let made = builder.with_retry(retry).with_http_connector(connector).build();
            made.map(|client| Arc::new(client) as _)
        }
    };
    made.map_err(|error| StoreError::Setup {
        place: bucket.to_string(),
        message: error.to_string(),
        hint: bucket.provider.credentials_hint(),
    })
}

/// The variables that mean something to a provider. How its client connects is decided here, not by variables.
fn known<K: std::str::FromStr + AsRef<str>>(options: &BucketOptions) -> impl Iterator<Item = (K, &str)> {
    options.variables.iter().filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let is_of_provider = BucketOptions::PREFIXES
            .iter()
            .any(|prefix| name.starts_with(&prefix.to_ascii_lowercase()));
        let about_connecting = name
            .split_once('_')
            .is_some_and(|(_, rest)| rest.parse::<ClientConfigKey>().is_ok());
        (is_of_provider && !about_connecting).then_some(())?;
        Some((name.parse().ok()?, value.as_str()))
    })
}

/// Content and names travel in the clear only to this host itself, or where somebody said so in as many words.
fn allow_http(bucket: &Bucket, options: &BucketOptions) -> Result<bool, StoreError> {
    let given = |name: &str| options.variables.get(name).map(String::as_str);
    let endpoint = options.endpoint.as_deref().or_else(|| match bucket.provider {
        Provider::S3 => given("AWS_ENDPOINT_URL_S3")
            .or_else(|| given("AWS_ENDPOINT_URL"))
            .or_else(|| given("AWS_ENDPOINT")),
        Provider::Google => given("GOOGLE_BASE_URL"),
        Provider::Azure => given("AZURE_STORAGE_ENDPOINT").or_else(|| given("AZURE_ENDPOINT")),
    });
    let setup = |message: String, hint| StoreError::Setup {
        place: bucket.to_string(),
        message,
        hint,
    };
    let Some(endpoint) = endpoint else { return Ok(false) };
    if endpoint.starts_with("https://") {
        return Ok(false);
    }
    let Some(rest) = endpoint.strip_prefix("http://") else {
        let message = format!("the endpoint {endpoint:?} is no http:// or https:// address");
        return Err(setup(
            message,
            "correct `artifacts_endpoint`, or the variable of the provider",
        ));
    };
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    let is_here = host == "localhost" || host == "[" || host.starts_with("127.");
    let is_wanted = ["AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP"]
        .iter()
        .any(|name| given(name) == Some("true"));
    if is_here || is_wanted {
        return Ok(true);
    }
    let message = format!("the endpoint {endpoint} would be spoken to without encryption");
    Err(setup(
        message,
        "use https://, or set AWS_ALLOW_HTTP=true where the network is trusted",
    ))
}

/// Makes HTTP clients. The library's own would look for proxies in the environment.
#[derive(Clone, Debug)]
struct Connector {
    proxies: Vec<(Proxied, String)>,
    direct: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Proxied {
    Http,
    Https,
    All,
}

impl Connector {
    fn of(options: &BucketOptions) -> Self {
        let kinds = [
            (Proxied::Https, "HTTPS_PROXY"),
            (Proxied::Http, "HTTP_PROXY"),
            (Proxied::All, "ALL_PROXY"),
        ];
        let proxies = kinds
            .iter()
            .filter_map(|(kind, name)| Some((*kind, options.proxy(name)?.to_owned())));
        Self {
            proxies: proxies.collect(),
            direct: options.proxy("NO_PROXY").map(str::to_owned),
        }
    }

    fn reqwest(&self, allow_http: bool, connect: Duration) -> reqwest::Result<reqwest::Client> {
        // Fails where somebody has chosen one already, which is as good.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("skillbox/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .https_only(!allow_http)
            .http1_only()
            .connect_timeout(connect)
            .read_timeout(SILENCE);
        for (kind, address) in &self.proxies {
            let proxy = match kind {
                Proxied::Http => reqwest::Proxy::http(address),
                Proxied::Https => reqwest::Proxy::https(address),
                Proxied::All => reqwest::Proxy::all(address),
            }?;
            let direct = self.direct.as_deref().and_then(reqwest::NoProxy::from_string);
            builder = builder.proxy(proxy.no_proxy(direct));
        }
        builder.build()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        // The library is less patient with the places that give credentials where none were set.
        let is_impatient = options.get_config_value(&ClientConfigKey::ConnectTimeout).as_deref() == Some("1s");
        let connect = if is_impatient { CONNECT_FOR_CREDENTIALS } else { CONNECT };
        let client = self.reqwest(allow_http.as_deref() == Some("true"), connect);
        client
            .map(HttpClient::new)
            .map_err(|source| object_store::Error::Generic {
                store: "HTTP client",
                source: Box::new(source),
            })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Location;

    fn made(url: &str, variables: &[(&str, &str)], endpoint: Option<&str>) -> Result<String, StoreError> {
        let Location::Bucket(bucket) = Location::parse(url, Path::new("")).unwrap() else {
            panic!("{url} is a directory");
        };
        let variables = variables
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let options = BucketOptions {
            variables: variables.collect(),
            endpoint: endpoint.map(str::to_owned),
            ..BucketOptions::new("")
        };
        client(&bucket, &options).map(|client| client.to_string())
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];

    #[test]
    fn each_provider_has_its_client() {
        assert_eq!(made("s3://bucket/x", &KEYS, None).unwrap(), "AmazonS3(bucket)");
        let token = [("GOOGLE_BEARER_TOKEN", "t")];
        assert_eq!(
            made("gs://bucket/x", &token, None).unwrap(),
            "GoogleCloudStorage(bucket)"
        );
        let account = [
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
            ("AZURE_USE_AZURE_CLI", "true"),
        ];
        let azure = made("az://box/x", &account, None).unwrap();
        assert!(
            azure.contains("account: account") && azure.contains("container: box"),
            "{azure}"
        );
        let url = "abfss://box@account.dfs.core.windows.net/x";
        assert!(made(url, &account[1..], None).unwrap().contains("account: account"));
    }

    #[test]
    fn half_a_pair_of_keys_is_told_with_what_to_set() {
        let error = made("s3://bucket", &KEYS[..1], None).unwrap_err();
        assert!(error.to_string().contains("SecretAccessKey"), "{error}");
        assert!(error.hint().unwrap().contains("AWS_SECRET_ACCESS_KEY"));
    }

    #[test]
    fn s31_nothing_travels_in_the_clear_unasked() {
        assert!(made("s3://bucket", &KEYS, Some("http://127.0.0.1:9000")).is_ok());
        assert!(made("s3://bucket", &KEYS, Some("http://localhost:9000")).is_ok());
        assert!(made("s3://bucket", &KEYS, Some("http://[::1]:9000")).is_ok());
        assert!(made("s3://bucket", &KEYS, Some("https://store.example")).is_ok());
        let clear = made("s3://bucket", &KEYS, Some("http://store.example")).unwrap_err();
        assert!(clear.to_string().contains("without encryption"), "{clear}");
        let by_variable = [KEYS[0], KEYS[1], ("AWS_ENDPOINT_URL", "http://store.example")];
        assert!(made("s3://bucket", &by_variable, None).is_err());
        let wanted = [KEYS[0], KEYS[1], ("AWS_ALLOW_HTTP", "true")];
        assert!(made("s3://bucket", &wanted, Some("http://store.example")).is_ok());
        assert!(made("s3://bucket", &KEYS, Some("store.example")).is_err());
    }
}
