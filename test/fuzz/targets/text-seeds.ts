// Short correct texts of each format, which the fuzzer changes. Data only.

const id = 'a'.repeat(64);
const digest = 'b'.repeat(64);
const base = { spec_version: '1.0.34', version: 3, expires: '2999-01-01T00:00:00Z' };
const key = { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: 'c'.repeat(64) } };
const role = { keyids: [id], threshold: 1 };
const target = { length: 3, hashes: { sha256: digest }, custom: { writ: { format: 1 } } };

const roles = [
  {
    _type: 'root',
    consistent_snapshot: true,
    keys: { [id]: key },
    roles: { root: role, timestamp: role, snapshot: role, targets: role },
  },
  { _type: 'timestamp', meta: { 'snapshot.json': { version: 1, length: 9, hashes: { sha256: digest } } } },
  { _type: 'snapshot', meta: { 'targets.json': { version: 1 }, 'team.json': { version: 2 } } },
  {
    _type: 'targets',
    targets: { 'b/1.tar.br': target },
    delegations: {
      keys: { [id]: key },
      roles: [{ name: 'team', keyids: [id], threshold: 1, paths: ['b/*'], terminating: true }],
    },
  },
];

export const metadataFiles: readonly Buffer[] = roles.map((signed) =>
  Buffer.from(
    JSON.stringify({ signatures: [{ keyid: id, sig: 'd'.repeat(128) }], signed: { ...base, ...signed } }),
  ),
);

export const hostConfig: readonly Buffer[] = [
  `repository: https://policy.example.net/
bundles:
  - name: dns-edge
`,
  `repository: [https://a.example/, file:///media/usb/repo]
poll: { every: 5m }
host: { labels: { site: ams } }
bundles:
  - name: dns-edge
    channel: stable
    checks:
      - run: [kresd, -c, '{bundle}/x.conf']
        name: parses
        timeout: 10s
workers:
  - name: resolver
    uses: [dns-edge]
    when: { reset: ['*.conf'] }
    reset: { signal: HUP, pidFile: /run/x.pid }
    probe: { run: [dig, x], every: 1m }
`,
].map((text) => Buffer.from(text));

const answer = (value: string): string =>
  `<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value>${value}</value>\n</param>\n</params>\n</methodResponse>\n`;
const member = (name: string, value: string): string =>
  `<member>\n<name>${name}</name>\n<value>${value}</value>\n</member>\n`;

export const xmlRpcAnswers: readonly Buffer[] = [
  answer('<boolean>1</boolean>'),
  answer('a &lt;b&gt; &amp;'),
  answer(
    `<array><data>\n<value><struct>\n${member('pid', '<int>5</int>')}${member('name', '<string>web</string>')}</struct></value>\n</data></array>`,
  ),
  `<?xml version='1.0'?>\n<methodResponse>\n<fault>\n<value><struct>\n${member('faultCode', '<int>70</int>')}${member('faultString', '<string>NOT_RUNNING</string>')}</struct></value>\n</fault>\n</methodResponse>\n`,
].map((text) => Buffer.from(text));
