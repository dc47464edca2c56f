//! Who is connected: producers and consumers, by group, connection and client id.
//!
//! [`ClientTables`] is a pure state machine: events and the time go in, what is to be told to whom comes out.
//! [`ClientRegistry`] puts a lock around it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;
use protocol::Language;
use protocol::body::{ConsumeFromWhere, ConsumeType, ConsumerData, MessageModel, SubscriptionData};

/// A connection, as far as the tables care.
pub trait Peer: Clone {
    fn id(&self) -> u64;
}

impl Peer for remoting::Connection {
    fn id(&self) -> u64 {
        remoting::Connection::id(self)
    }
}

/// One client on one connection.
#[derive(Debug, Clone)]
pub struct ClientChannel<P> {
    pub peer: P,
    pub client_id: String,
    pub language: Language,
    /// The client's version ordinal.
    pub version: i32,
    /// When it was last heard of, milliseconds since 1970.
    pub heard: i64,
}

/// The members of a consumer group and what they subscribe to.
pub struct ConsumerGroup<P> {
    pub channels: HashMap<u64, ClientChannel<P>>,
    pub subscriptions: HashMap<String, Arc<SubscriptionData>>,
    pub consume_type: ConsumeType,
    pub message_model: MessageModel,
    pub consume_from_where: ConsumeFromWhere,
}

/// What the outside has to do after an event.
#[derive(Debug)]
pub struct Changes<P> {
    /// Tell these connections that the members of the group changed.
    pub notify: Vec<(P, String)>,
    /// These connections have been silent too long.
    pub close: Vec<P>,
    /// Consumer groups without members left.
    pub emptied: Vec<String>,
    /// Membership or subscriptions of some group changed.
    pub changed: bool,
}

impl<P> Default for Changes<P> {
    fn default() -> Self {
        Self { notify: Vec::new(), close: Vec::new(), emptied: Vec::new(), changed: false }
    }
}

/// The groups one connection is part of, so that its end is found without a search.
#[derive(Default)]
struct Memberships {
    producers: BTreeSet<String>,
    consumers: BTreeSet<String>,
}

/// Everything known of connected clients.
pub struct ClientTables<P> {
    consumers: HashMap<String, ConsumerGroup<P>>,
    producers: HashMap<String, HashMap<u64, ClientChannel<P>>>,
    memberships: HashMap<u64, Memberships>,
}

impl<P> Default for ClientTables<P> {
    fn default() -> Self {
        Self { consumers: HashMap::new(), producers: HashMap::new(), memberships: HashMap::new() }
    }
}

impl<P: Peer> ClientTables<P> {
    /// A heartbeat named a producer group.
    pub fn register_producer(&mut self, group: &str, client: &ClientChannel<P>) {
        let id = client.peer.id();
        let channels = self.producers.entry(group.to_owned()).or_default();
        match channels.get_mut(&id) {
            Some(known) => known.heard = client.heard,
            None => {
                channels.insert(id, client.clone());
                self.memberships.entry(id).or_default().producers.insert(group.to_owned());
            }
        }
    }

    /// A heartbeat named a consumer group. `subscribe` is false when the client left its subscriptions out of the
    /// heartbeat; `notify` is the group's own setting.
    pub fn register_consumer(
        &mut self,
        client: &ClientChannel<P>,
        data: &ConsumerData,
        subscribe: bool,
        notify: bool,
    ) -> Changes<P> {
        let id = client.peer.id();
        let group = self.consumers.entry(data.group_name.clone()).or_insert_with(|| ConsumerGroup {
            channels: HashMap::new(),
            subscriptions: HashMap::new(),
            consume_type: data.consume_type,
            message_model: data.message_model,
            consume_from_where: data.consume_from_where,
        });
        group.consume_type = data.consume_type;
        group.message_model = data.message_model;
        group.consume_from_where = data.consume_from_where;
        let mut changes = Changes::default();
        match group.channels.get_mut(&id) {
            Some(known) if known.client_id == client.client_id => known.heard = client.heard,
            Some(known) => {
                tracing::error!(
                    group = data.group_name,
                    old = known.client_id,
                    new = client.client_id,
                    "two client ids of one group on one connection"
                );
                *known = client.clone();
            }
            None => {
                group.channels.insert(id, client.clone());
                self.memberships.entry(id).or_default().consumers.insert(data.group_name.clone());
                changes.changed = true;
            }
        }
        if subscribe {
            changes.changed |= group.subscribe(&data.subscription_data_set);
        }
        if changes.changed && notify {
            changes.notify = group.audience(&data.group_name);
        }
        changes
    }

    /// A client says good-bye to a producer group.
    pub fn unregister_producer(&mut self, group: &str, peer: u64) {
        if let Some(channels) = self.producers.get_mut(group) {
            channels.remove(&peer);
            if channels.is_empty() {
                self.producers.remove(group);
            }
        }
        self.leave(peer, |memberships| memberships.producers.remove(group));
    }

    /// A client says good-bye to a consumer group.
    pub fn unregister_consumer(&mut self, group: &str, peer: u64, notify: bool) -> Changes<P> {
        let mut changes = Changes::default();
        self.remove_consumer(group, peer, notify, &mut changes);
        self.leave(peer, |memberships| memberships.consumers.remove(group));
        changes
    }

    /// A connection ended. Some clients never say good-bye, so this is all there is.
    pub fn disconnected(&mut self, peer: u64) -> Changes<P> {
        let mut changes = Changes::default();
        let Some(memberships) = self.memberships.remove(&peer) else { return changes };
        for group in &memberships.producers {
            self.unregister_producer(group, peer);
        }
        for group in &memberships.consumers {
            self.remove_consumer(group, peer, true, &mut changes);
        }
        changes
    }

    /// Drops clients not heard of for `limit_ms`.
    pub fn expire(&mut self, now: i64, limit_ms: i64) -> Changes<P> {
        let mut silent: HashMap<u64, P> = HashMap::new();
        let channels = self.consumers.values().flat_map(|group| group.channels.values());
        for channel in channels.chain(self.producers.values().flat_map(HashMap::values)) {
            if now - channel.heard > limit_ms {
                silent.insert(channel.peer.id(), channel.peer.clone());
            }
        }
        let mut changes = Changes::default();
        for (id, peer) in silent {
            let one = self.disconnected(id);
            changes.notify.extend(one.notify);
            changes.emptied.extend(one.emptied);
            changes.changed |= one.changed;
            changes.close.push(peer);
        }
        changes
    }

    pub fn consumer_group(&self, group: &str) -> Option<&ConsumerGroup<P>> {
        self.consumers.get(group)
    }

    pub fn producer_group(&self, group: &str) -> Option<&HashMap<u64, ClientChannel<P>>> {
        self.producers.get(group)
    }

    pub fn producers(&self) -> impl Iterator<Item = (&String, &HashMap<u64, ClientChannel<P>>)> {
        self.producers.iter()
    }

    pub fn consumers(&self) -> impl Iterator<Item = (&String, &ConsumerGroup<P>)> {
        self.consumers.iter()
    }

    /// The online groups that subscribe to a topic.
    pub fn groups_of_topic(&self, topic: &str) -> HashSet<String> {
        let subscribed = self.consumers.iter().filter(|(_, group)| group.subscriptions.contains_key(topic));
        subscribed.map(|(name, _)| name.clone()).collect()
    }

    fn remove_consumer(&mut self, group: &str, peer: u64, notify: bool, changes: &mut Changes<P>) {
        let Some(members) = self.consumers.get_mut(group) else { return };
        if members.channels.remove(&peer).is_none() {
            return;
        }
        changes.changed = true;
        if members.channels.is_empty() {
            self.consumers.remove(group);
            changes.emptied.push(group.to_owned());
        } else if notify {
            changes.notify.extend(members.audience(group));
        }
    }

    fn leave(&mut self, peer: u64, remove: impl FnOnce(&mut Memberships) -> bool) {
        if let Some(memberships) = self.memberships.get_mut(&peer) {
            remove(memberships);
            if memberships.producers.is_empty() && memberships.consumers.is_empty() {
                self.memberships.remove(&peer);
            }
        }
    }
}

impl<P: Peer> ConsumerGroup<P> {
    /// Takes over a client's subscriptions; true when a topic came or went.
    fn subscribe(&mut self, list: &[SubscriptionData]) -> bool {
        let mut changed = false;
        for subscription in list {
            match self.subscriptions.get(&subscription.topic) {
                Some(known) if subscription.sub_version <= known.sub_version => continue,
                Some(_) => {}
                None => changed = true,
            }
            self.subscriptions.insert(subscription.topic.clone(), Arc::new(subscription.clone()));
        }
        let before = self.subscriptions.len();
        self.subscriptions.retain(|topic, _| list.iter().any(|subscription| subscription.topic == *topic));
        changed || self.subscriptions.len() != before
    }

    /// Whom to tell of a change. Broadcasting members share nothing, so they are not told.
    fn audience(&self, group: &str) -> Vec<(P, String)> {
        if self.message_model == MessageModel::Broadcasting {
            return Vec::new();
        }
        self.channels.values().map(|channel| (channel.peer.clone(), group.to_owned())).collect()
    }

    pub fn find_client(&self, client_id: &str) -> Option<&ClientChannel<P>> {
        self.channels.values().find(|channel| channel.client_id == client_id)
    }
}

/// What a pull has to know of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupModel {
    pub consume_type: ConsumeType,
    pub message_model: MessageModel,
    pub consume_from_where: ConsumeFromWhere,
}

/// The tables of the running broker.
#[derive(Default)]
pub struct ClientRegistry {
    tables: RwLock<ClientTables<remoting::Connection>>,
    /// The last fingerprint heard of each group's subscriptions; 0 from clients that send none.
    fingerprints: RwLock<HashMap<String, i32>>,
}

impl ClientRegistry {
    /// The subscription of an online group to a topic.
    pub fn subscription(&self, group: &str, topic: &str) -> Option<Arc<SubscriptionData>> {
        self.tables.read().consumer_group(group)?.subscriptions.get(topic).cloned()
    }

    /// How an online group consumes; `None` while no member is connected.
    pub fn group_model(&self, group: &str) -> Option<GroupModel> {
        let tables = self.tables.read();
        let group = tables.consumer_group(group)?;
        Some(GroupModel {
            consume_type: group.consume_type,
            message_model: group.message_model,
            consume_from_where: group.consume_from_where,
        })
    }

    pub fn subscription_count(&self, group: &str) -> usize {
        self.tables.read().consumer_group(group).map_or(0, |group| group.subscriptions.len())
    }

    /// Where a client of a group can be reached.
    pub fn find_client(&self, group: &str, client_id: &str) -> Option<ClientChannel<remoting::Connection>> {
        self.tables.read().consumer_group(group)?.find_client(client_id).cloned()
    }

    /// Remembers the fingerprint of a heartbeat; true when the group's last one was another.
    pub fn fingerprint_changed(&self, group: &str, fingerprint: i32) -> bool {
        if self.fingerprints.read().get(group) == Some(&fingerprint) {
            return false;
        }
        self.fingerprints.write().insert(group.to_owned(), fingerprint).is_some()
    }

    /// The group has no member left.
    pub fn forget_fingerprint(&self, group: &str) {
        self.fingerprints.write().remove(group);
    }

    pub fn read<T>(&self, view: impl FnOnce(&ClientTables<remoting::Connection>) -> T) -> T {
        view(&self.tables.read())
    }

    pub fn change<T>(&self, event: impl FnOnce(&mut ClientTables<remoting::Connection>) -> T) -> T {
        event(&mut self.tables.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Peer for u64 {
        fn id(&self) -> u64 {
            *self
        }
    }

    fn client(peer: u64, id: &str, heard: i64) -> ClientChannel<u64> {
        ClientChannel { peer, client_id: id.into(), language: Language::JAVA, version: 493, heard }
    }

    fn consumer(group: &str, topics: &[&str], version: i64) -> ConsumerData {
        let subscription_data_set = topics
            .iter()
            .map(|topic| SubscriptionData {
                topic: (*topic).into(),
                sub_string: "*".into(),
                sub_version: version,
                ..Default::default()
            })
            .collect();
        ConsumerData { group_name: group.into(), subscription_data_set, ..Default::default() }
    }

    fn told(changes: &Changes<u64>) -> Vec<u64> {
        let mut ids: Vec<u64> = changes.notify.iter().map(|(peer, _)| *peer).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn members_hear_of_joins_and_leaves() {
        let mut tables = ClientTables::default();
        let data = consumer("g", &["T"], 1);
        assert_eq!(told(&tables.register_consumer(&client(1, "a", 0), &data, true, true)), [1]);
        assert_eq!(told(&tables.register_consumer(&client(2, "b", 0), &data, true, true)), [1, 2]);
        let again = tables.register_consumer(&client(2, "b", 1), &data, true, true);
        assert!(!again.changed && again.notify.is_empty());
        assert_eq!(told(&tables.disconnected(1)), [2]);
        let last = tables.unregister_consumer("g", 2, true);
        assert_eq!((told(&last), last.emptied), (vec![], vec!["g".to_owned()]));
        assert!(tables.memberships.is_empty() && tables.consumers.is_empty());
    }

    #[test]
    fn nobody_is_told_when_the_group_or_the_model_says_so() {
        let mut tables = ClientTables::default();
        let quiet = tables.register_consumer(&client(1, "a", 0), &consumer("g", &["T"], 1), true, false);
        assert!(quiet.changed && quiet.notify.is_empty());
        let data = ConsumerData { message_model: MessageModel::Broadcasting, ..consumer("h", &["T"], 1) };
        assert!(tables.register_consumer(&client(1, "a", 0), &data, true, true).notify.is_empty());
    }

    #[test]
    fn subscriptions_follow_the_newest_version_and_the_last_list() {
        let mut tables = ClientTables::default();
        tables.register_consumer(&client(1, "a", 0), &consumer("g", &["T", "U"], 5), true, true);
        let mut newer = consumer("g", &["T"], 6);
        newer.subscription_data_set[0].sub_string = "x".into();
        assert!(tables.register_consumer(&client(1, "a", 0), &newer, true, true).changed, "U went");
        let group = tables.consumer_group("g").unwrap();
        assert_eq!(group.subscriptions["T"].sub_string, "x");
        assert_eq!(group.subscriptions.len(), 1);
        tables.register_consumer(&client(1, "a", 0), &consumer("g", &["T"], 5), true, true);
        assert_eq!(tables.consumer_group("g").unwrap().subscriptions["T"].sub_string, "x", "an older one is ignored");
        let without = tables.register_consumer(&client(1, "a", 0), &consumer("g", &[], 9), false, true);
        assert!(!without.changed);
        assert_eq!(tables.groups_of_topic("T"), HashSet::from(["g".to_owned()]));
        assert!(tables.groups_of_topic("U").is_empty());
    }

    #[test]
    fn silent_clients_are_dropped() {
        let mut tables = ClientTables::default();
        tables.register_producer("p", &client(1, "a", 0));
        tables.register_consumer(&client(1, "a", 0), &consumer("g", &["T"], 1), true, true);
        tables.register_consumer(&client(2, "b", 100), &consumer("g", &["T"], 1), true, true);
        assert!(tables.expire(120_000, 120_000).close.is_empty());
        let gone = tables.expire(120_001, 120_000);
        assert_eq!((gone.close.clone(), told(&gone)), (vec![1], vec![2]));
        assert!(tables.producer_group("p").is_none());
    }

    #[test]
    fn a_producer_group_lives_while_a_member_does() {
        let mut tables = ClientTables::default();
        tables.register_producer("p", &client(1, "a", 0));
        tables.register_producer("p", &client(2, "b", 0));
        tables.unregister_producer("p", 1);
        assert_eq!(tables.producer_group("p").unwrap().len(), 1);
        tables.disconnected(2);
        assert!(tables.producer_group("p").is_none() && tables.memberships.is_empty());
    }
}
