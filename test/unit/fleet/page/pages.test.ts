// The pages as HTML: their content by role and name, and that untrusted text never becomes markup.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HeadVerdict, SignedRelease } from '../../../../src/core/fleet/signed-releases.js';
import { firstScreen } from '../../../../src/fleet/page/first-screen.js';
import { hostPage } from '../../../../src/fleet/page/host.js';
import { hostsPage, refusedFilterPage } from '../../../../src/fleet/page/hosts.js';
import { logPage } from '../../../../src/fleet/page/log.js';
import { releasePage } from '../../../../src/fleet/page/release.js';
import { signInPage } from '../../../../src/fleet/page/sign-in.js';
import { reportOf } from '../../../kit/fleet/fleet-bench.js';
import { frame, hostDetail, hostileName, hostLine, nowMs, release, summary } from './planted-answers.js';

const hosts = (...list: ReturnType<typeof hostLine>[]) =>
  ({ schema: 1, type: 'fleet.hosts', hosts: list }) as const;

/** Removes markup, and decodes escaped characters. */
function textOf(html: string): string {
  return html
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');
}

describe('the first screen', () => {
  it('shows the state of the fleet in its heading, with a label for the colour', () => {
    const html = firstScreen(summary({ level: 'critical', sentence: '3 hosts refused dns-edge 43.' }), frame);
    assert.match(
      html,
      /<h1><span class="badge critical">CRITICAL<\/span> 3 hosts refused dns-edge 43\.<\/h1>/,
    );
    assert.match(html, /<title>CRITICAL, 40 hosts - Writ fleet<\/title>/);
    assert.match(html, /<html lang="en">/);
  });

  it('links each problem to the affected hosts', () => {
    const findings = [
      { level: 'critical', code: 'REFUSED', text: '3 hosts refused', where: 'state=refused,bundle=dns-edge' },
    ] as const;
    const html = firstScreen(summary({ level: 'critical', findings }), frame);
    assert.match(html, /<a href="\/hosts\?where=state%3Drefused%2Cbundle%3Ddns-edge">3 hosts refused<\/a>/);
  });

  it('shows why a release was refused, if hosts report it, and what to do', () => {
    const offer = { bundle: 'dns-edge', channel: 'stable', serial: 43, state: 'refused', hosts: 2 } as const;
    const offers = [{ ...offer, code: 'CHECK_FAILED', firstAtMs: nowMs, lines: ['block.rpz:214: invalid'] }];
    const text = textOf(firstScreen(summary({ offers }), frame));
    assert.match(text, /refused dns-edge 43 stable CHECK_FAILED on 2 hosts , first 2026-11-21 14:32:05 UTC/);
    assert.match(text, /block\.rpz:214: invalid Next: Fix what the check names/);
  });

  it('shows an unknown code, and a code that is the name of a member of every object', () => {
    const offer = { bundle: 'b', channel: 'c', serial: 1, state: 'failed', hosts: 1 } as const;
    for (const code of ['OF_A_LATER_VERSION', 'constructor'])
      assert.match(
        firstScreen(summary({ offers: [{ ...offer, code }] }), frame),
        new RegExp(`<code>${code}</code>`),
      );
  });

  it('counts silent and stopped hosts of a release apart, with a filter that finds them', () => {
    const html = firstScreen(summary({ releases: [release(42, { confirmed: 2, silent: 1 })] }), frame);
    assert.match(html, /aria-label="serial 42 confirmed: 2 hosts, serial 42 silent: 1 host"/);
    assert.ok(html.includes('serial%3D42%2Cstate%3Dsilent"'));
    assert.doesNotMatch(textOf(html), /unconfirmed silent stopped/, 'a column without a host');
  });

  it('names the role that sees first lines to a visitor who does not see them', () => {
    const offers = [
      { bundle: 'dns', channel: 'stable', serial: 43, state: 'refused', code: 'CHECK_FAILED', hosts: 1 },
    ] as const;
    const seenBy = (role: string) =>
      textOf(firstScreen(summary({ offers }), { ...frame, visitor: { who: 'a', role, by: 'session' } }));
    assert.match(seenBy('view'), /A token of the role detail also shows the first lines/);
    assert.doesNotMatch(seenBy('detail'), /A token of the role detail/);
  });

  it('shows the roles that hosts trust only if they differ from the repository', () => {
    const keys = [{ role: 'timestamp', version: 7, expiresAtMs: nowMs + 86_400_000 }];
    const repository = { url: 'https://a/', checkedAtMs: nowMs, releases: [], roles: keys };
    const shown = (of: ReturnType<typeof summary>['keys']) =>
      textOf(firstScreen(summary({ keys: of, repositories: [repository] }), frame));
    assert.doesNotMatch(shown(keys), /as reported by the most recently seen hosts/);
    const older = [{ role: 'timestamp', version: 6, expiresAtMs: nowMs + 86_400_000 }];
    assert.match(shown(older), /as reported by the most recently seen hosts/);
  });

  it('names the column of each cell, which a narrow screen shows before it', () => {
    const html = hostsPage({ where: '' }, hosts(hostLine('a')), frame);
    assert.match(html, /<td data-label="state"><span class="badge ok">heard/);
  });

  it('draws releases as a bar with the counts as text', () => {
    const releases = [release(42, { confirmed: 39 }), release(41, { confirmed: 1, place: 'tail' })];
    const html = firstScreen(summary({ releases }), frame);
    assert.match(html, /<svg role="img"[^>]* aria-label="serial 42 confirmed: 39 hosts, serial 41: 1 host"/);
    assert.match(html, /<caption class="hidden">Releases of dns-edge stable<\/caption>/);
  });

  it('names an outdated root of hosts, and a role near its expiry', () => {
    const roots = [
      { version: 2, digest: 'c'.repeat(64), hosts: 30 },
      { version: 1, digest: 'd'.repeat(64), hosts: 10 },
    ];
    const keys = [{ role: 'timestamp', version: 7, expiresAtMs: nowMs - 1000 }];
    const text = textOf(firstScreen(summary({ roots, keys }), frame));
    assert.match(text, /root v1 10 older root/);
    assert.match(text, /timestamp 7 expired 1 s ago/);
  });

  it('shows how many hosts have unknown liveness, with a filter that finds them', () => {
    const { hosts } = summary();
    const html = firstScreen(summary({ hosts: { ...hosts, silent: 2, unjudged: 1 } }), frame);
    assert.match(textOf(html), /Unknown whether 1 host is silent/);
    assert.ok(html.includes('href="/hosts?where=state%3Dunjudged"'));
    assert.doesNotMatch(textOf(firstScreen(summary({ silence: 'too-early' }), frame)), /too early/i);
  });

  it('shows complete texts without a host', () => {
    const none = { releases: [], roots: [], versions: [], keys: [] };
    const text = textOf(firstScreen(summary({ ...none, level: 'warning' }), frame));
    assert.match(text, /No host has reported an active release/);
    assert.ok(!text.includes('Roots and versions'), 'a table without a row');
    assert.doesNotMatch(text, /Offered, but not active/, 'a section without a row');
  });
});

describe('the list of hosts', () => {
  it('keeps the filter in every link to another page of the list', () => {
    const where = 'state=refused,label.site=a\\,b';
    const html = hostsPage({ where, after: 'x' }, { ...hosts(hostLine('a')), next: 'key&1' }, frame);
    assert.match(html, /<input[^>]* value="state=refused,label\.site=a\\,b"/);
    const asked = 'where=state%3Drefused%2Clabel.site%3Da%5C%2Cb';
    assert.ok(html.includes(`href="/hosts?${asked}&amp;after=key%261"`));
    assert.ok(html.includes(`href="/v1/hosts.csv?${asked}"`));
    assert.ok(html.includes(`href="/hosts?${asked}">First page`));
  });

  it('shows in a row the active release, the refused release, and a clone', () => {
    const offered = { serial: 43, state: 'refused', code: 'CHECK_FAILED', atMs: nowMs } as const;
    const [bundle] = hostLine('a').bundles;
    const host = hostLine('a', {
      cloned: true,
      skewMs: -60_000,
      bundles: bundle ? [{ ...bundle, offered }] : [],
    });
    const text = textOf(hostsPage({ where: '' }, hosts(host), frame));
    assert.match(
      text,
      /a heard cloned dns-edge 42 confirmed on one of two machines 43 refused CHECK_FAILED 4 s ago clock 1 min behind/,
    );
  });

  it('shows the version of an OPA as that of an OPA', () => {
    const opa = hostLine('a', { kind: 'opa', version: '1.4.2' });
    const text = textOf(hostsPage({ where: '' }, hosts(opa), frame));
    assert.match(text, /heard version a .* OPA 1\.4\.2/);
    assert.doesNotMatch(textOf(hostsPage({ where: '' }, hosts(hostLine('a')), frame)), /OPA/);
  });

  it('marks a bundle that is not the signed release, and no other', () => {
    const [bundle] = hostLine('a').bundles;
    assert.ok(bundle);
    const signed = (standing: 'current' | 'behind' | 'withdrawn' | 'unknown') =>
      textOf(
        hostsPage(
          { where: '' },
          hosts(hostLine('a', { bundles: [{ ...bundle, signed: { standing, serial: 43 } }] })),
          frame,
        ),
      );
    for (const standing of ['behind', 'withdrawn', 'unknown'] as const)
      assert.match(signed(standing), new RegExp(`dns-edge 42 confirmed ${standing}`));
    assert.match(signed('current'), /dns-edge 42 confirmed 4 s ago/);
  });

  it('shows the state of a silent or stopped host as of its last report, in grey', () => {
    for (const presence of ['silent', 'stopped'] as const) {
      const html = hostsPage(
        { where: '' },
        hosts(hostLine('a', { presence, lastSeenMs: nowMs - 300_000 })),
        frame,
      );
      assert.ok(html.includes('<span class="badge quiet">confirmed, last report 5 min ago</span>'), presence);
    }
    const reporting = hostsPage({ where: '' }, hosts(hostLine('a')), frame);
    assert.ok(reporting.includes('<span class="badge ok">confirmed</span>'));
  });

  it('shows that an enrolled host has never reported', () => {
    const text = textOf(hostsPage({ where: '' }, hosts(hostLine('a', { presence: 'never' })), frame));
    assert.doesNotMatch(text, /ago/);
  });

  it('shows the mistake of a filter, and keeps the filter for a correction', () => {
    const html = refusedFilterPage('state=<b>', 'no state', frame);
    assert.match(html, /value="state=&lt;b(?:&gt;|>)"/);
    assert.match(html, /role="alert"/);
  });
});

describe('the page of a host', () => {
  const report = reportOf('a', { generation: 18, bundles: [] });

  it('begins with the state as in writ status; the worst condition decides', () => {
    const table = [
      [hostDetail('a', { report }), 'ACTIVE generation 18 is active'],
      [
        hostDetail('a', { report: { ...report, agent: 'stop' } }),
        'STOPPED the agent is not running; generation 18',
      ],
      [hostDetail('a', { report, presence: 'silent' }), 'SILENT generation 18'],
      [
        hostDetail('a', { report: { ...report, freshness: 'refused', health: 'warning' } }),
        'ALARM generation 18',
      ],
      [hostDetail('a', { report: { ...report, freshness: 'frozen' } }), 'FROZEN generation 18'],
      [hostDetail('a', { report: { ...report, freshness: 'stale' } }), 'STALE generation 18'],
      [hostDetail('a', { report: { ...report, findings: ['ACTIVATION_BLOCKED'] } }), 'BLOCKED generation 18'],
      [hostDetail('a', { report: { ...report, health: 'warning' } }), 'DEGRADED generation 18'],
      [hostDetail('a'), 'NEVER REPORTED it has not reported yet'],
      [hostDetail('a', { report, state: 'retired' }), 'RETIRED its key is refused'],
    ] as const;
    for (const [host, texts] of table)
      assert.ok(textOf(hostPage(host, frame)).includes(` a ${texts}`), texts);
  });

  it('shows the bundles of an OPA, and its own version', () => {
    const opa = { kind: 'opa', version: '0.68.0', bundles: [] } as const;
    const main = { name: 'main', code: 'bundle_error', message: hostileName };
    const opaBundles = [{ name: 'authz', revision: 'r1' }, main];
    const html = hostPage(hostDetail('a', { ...opa, opaBundles }), frame);
    const text = textOf(html);
    assert.match(text, / a DEGRADED 2 bundles reported by OPA, 1 with an error/);
    assert.match(text, /authz r1 - main none bundle_error/);
    assert.match(text, /OPA 0\.68\.0/);
    for (const wrong of ['NEVER REPORTED', 'Writ 0']) assert.ok(!text.includes(wrong), wrong);
    assert.ok(!html.includes('<script>alert'));
    const well = hostDetail('a', { ...opa, opaBundles: [{ name: 'authz', revision: 'r1' }] });
    assert.match(textOf(hostPage(well, frame)), / a REPORTED 1 bundle reported by OPA, 0 with an error/);
    const silent = textOf(hostPage({ ...well, presence: 'silent' }, frame));
    assert.match(silent, / a SILENT 1 bundle reported by OPA/);
  });

  it('names pending workers, and the other key with the same name', () => {
    const groups = [{ group: 'resolver', workers: 3, confirmed: 1, min: 1 }];
    const host = hostDetail('a', { report: { ...report, groups }, namesakes: ['ef'.repeat(32)] });
    const html = hostPage(host, frame);
    assert.match(textOf(html), /generation 18 is active, 2 workers not confirmed/);
    assert.ok(html.includes(`href="/hosts/${'ef'.repeat(32)}"`));
  });

  it('shows for each code of its report what it means and what to do', () => {
    const findings = ['WORKERS_MISSING', 'toString'];
    const text = textOf(hostPage(hostDetail('a', { report: { ...report, findings } }), frame));
    assert.match(
      text,
      /WORKERS_MISSING Fewer workers than `min` exist\. Next: Start the workers of this group\. toString /,
    );
    assert.doesNotMatch(text, /undefined/);
  });

  it('shows a bundle of a silent host as of its last report', () => {
    const host = hostDetail('a', { report, presence: 'silent', lastSeenMs: nowMs - 300_000 });
    assert.match(textOf(hostPage(host, frame)), /confirmed, last report 5 min ago/);
  });

  it('shows the command that approves a waiting host', () => {
    const text = textOf(hostPage(hostDetail('a', { state: 'waiting' }), frame));
    assert.ok(text.includes(`writ fleet host approve ${'ab'.repeat(32)}`));
  });
});

describe('a release, the log and the sign-in', () => {
  const name = { bundle: 'dns-edge', channel: 'stable', serial: 42 };
  const of = { schema: 1, type: 'fleet.release', offers: [] } as const;

  it('show how many hosts confirmed, as a curve and as text', () => {
    const report = { ...of, releases: [release(42, { confirmed: 3, unconfirmed: 1 })] };
    const curve = [{ atMs: nowMs - 1000, confirmed: 3 }];
    const html = releasePage(name, { ...report, curve }, frame);
    assert.match(html, /<svg role="img"[^>]* aria-label="3 hosts of 4 confirmed"/);
    assert.match(textOf(html), /unconfirmed 1 25 %/);
  });

  it('show which hosts ran and refused a release that no host runs any more', () => {
    const interval = { key: 'k', host: 'web-1', bundle: 'dns-edge', channel: 'stable', serial: 42 } as const;
    const past = { ran: 4, confirmed: 3, refusals: [{ state: 'refused', code: 'CHECK_FAILED', hosts: 1 }] };
    const intervals = [
      { ...interval, kind: 'active', state: 'confirmed', sinceMs: nowMs - 2000, untilMs: nowMs, merged: 7 },
      { ...interval, host: '', key: 'f'.repeat(64), kind: 'refused', code: 'CHECK_FAILED', sinceMs: nowMs },
    ] as const;
    const html = releasePage(name, { ...of, releases: [], curve: [], past, intervals }, frame);
    const text = textOf(html);
    assert.match(
      text,
      /No host runs it now\. 4 hosts ran it, 3 confirmed it\. 1 host refused it: CHECK_FAILED/,
    );
    assert.match(text, /web-1 confirmed 7 times that day 2026-11-21 14:32:03 UTC 2026-11-21 14:32:05 UTC/);
    assert.match(text, /f{12} refused 2026-11-21 14:32:05 UTC now CHECK_FAILED/);
    assert.ok(html.includes('href="/v1/releases/dns-edge/stable/42/history.csv"'));
    const never = { ran: 0, confirmed: 0, refusals: [] };
    const empty = textOf(releasePage(name, { ...of, releases: [], curve: [], past: never }, frame));
    assert.match(empty, /No host runs it now\. No host ran it\./);
  });

  it('warn of two repositories with the same serial', () => {
    const releases = [release(42, { confirmed: 1 }), release(42, { confirmed: 1, manifest: 'n'.repeat(64) })];
    assert.match(
      textOf(releasePage(name, { ...of, releases, curve: [] }, frame)),
      /2 releases of different repositories/,
    );
  });

  it('list changes, and link to older ones', () => {
    const entry = { id: 9, atMs: nowMs, who: 'store', what: 'token.create', subject: 's', detail: 'people' };
    const html = logPage({ schema: 1, type: 'fleet.log', entries: [entry], next: 9 }, frame);
    assert.match(textOf(html), /2026-11-21 14:32:05 UTC store token\.create s people/);
    assert.match(html, /href="\/log\?before=9"/);
  });

  it('never repeat a token, and label its field', () => {
    const html = signInPage({ next: '/hosts', refused: 'not good' }, frame);
    assert.match(html, /<label for="token">Token<\/label><input id="token" name="token" type="password"/);
    assert.match(html, /<form class="sign-in" method="post" action="\/sign-in">/);
    assert.doesNotMatch(html, /<input id="token"[^>]* value=/);
  });
});

describe('untrusted text', () => {
  const offered = {
    serial: 43,
    state: 'refused',
    code: hostileName,
    atMs: nowMs,
    line: hostileName,
  } as const;
  const line = hostLine(hostileName, {
    ...{
      health: hostileName,
      version: hostileName,
      key: hostileName,
      labels: { [hostileName]: hostileName },
    },
    bundles: [{ bundle: hostileName, channel: hostileName, offered }],
  });
  const offers = [{ bundle: hostileName, channel: hostileName, ...offered, hosts: 1, lines: [hostileName] }];
  const entry = {
    id: 9,
    atMs: nowMs,
    who: hostileName,
    what: hostileName,
    subject: hostileName,
    detail: hostileName,
  };
  const name = { bundle: hostileName, channel: hostileName, serial: 1 };
  const refused = { kind: 'refused', state: hostileName, code: hostileName } as const;
  const intervals = [{ ...name, ...refused, key: hostileName, host: hostileName, sinceMs: nowMs }];
  const past = { ran: 1, confirmed: 0, refusals: [{ state: hostileName, code: hostileName, hosts: 1 }] };
  const pages = {
    first: firstScreen(
      summary({ offers, sentence: hostileName, releases: [release(1, { ...name, confirmed: 1 })] }),
      frame,
    ),
    hosts: hostsPage({ where: hostileName }, hosts(line), frame),
    host: hostPage(hostDetail(hostileName, { ...line, namesakes: [hostileName], intervals }), frame),
    release: releasePage(
      name,
      { schema: 1, type: 'fleet.release', releases: [], offers, curve: [], past, intervals },
      frame,
    ),
    log: logPage({ schema: 1, type: 'fleet.log', entries: [entry] }, frame),
    'sign-in': signInPage({ next: hostileName, refused: hostileName }, frame),
  };

  for (const [page, html] of Object.entries(pages)) {
    it(`stays text on the page ${page}`, () => {
      assert.doesNotMatch(html, /<script>|<img/);
      // Only a double quote could end an attribute, because all attributes have double quotes.
      for (const [tag] of html.matchAll(/<[a-z][^<]*?>/g))
        assert.doesNotMatch(tag.replace(/"[^"]*"/g, ''), /onerror|'/);
      assert.match(html, /&lt;script/);
    });
  }

  it('is shown with its direction characters written out', () => {
    assert.ok(
      pages.hosts.includes('<bdi class="foreign">&lt;script>'),
      'a host name stands apart from the text around it',
    );
    assert.match(pages.hosts, /<bdi class="foreign">&lt;script>[^<]*\\u\{202e\}gpj\.exe\\u\{0\}/);
  });

  it('runs no script and no style of a page itself', () => {
    for (const html of Object.values(pages))
      assert.doesNotMatch(html, / style=|<style|javascript:|<script(?! src="\/assets)/);
  });
});

describe('pages of a server that follows repositories', () => {
  const day = 86_400_000;
  const signedOf = (more: Partial<SignedRelease>): SignedRelease[] => [
    { url: `https://a/${hostileName}`, standing: 'withdrawn', current: 42, ...more },
  ];
  const report = { schema: 1, type: 'fleet.release', offers: [], curve: [], releases: [] } as const;
  const name = { bundle: 'dns-edge', channel: 'stable', serial: 43 };
  const entry = {
    ...{ bundle: 'dns-edge', channel: 'stable', serial: 43, manifest: 'a', manifestBytes: 1, archive: 'b' },
    ...{ archiveBytes: 1, revision: '', createdAtMs: 0, role: 'targets', requires: [], stamps: [] },
    ...{ withdrawn: [], seenAtMs: 0 },
  };

  it('name roles near their expiry, and an unreachable repository, in the section of trust', () => {
    const role = (text: string, leftMs: number) => ({ role: text, version: 3, expiresAtMs: nowMs + leftMs });
    const roles = [role('root', 300 * day), role(hostileName, 2 * day), role('timestamp', -day)];
    const failing = { code: 'SERVER_UNREACHABLE', sinceMs: nowMs - 600_000 };
    const repositories = [{ url: 'https://a/', checkedAtMs: nowMs - 900_000, failing, roles, releases: [] }];
    const html = firstScreen(summary({ repositories }), frame);
    const text = textOf(html);
    assert.ok(!html.includes('<script>alert'));
    assert.match(text, /https:\/\/a\/ read 15 min ago, 0 channels/);
    assert.match(text, /cannot be read: SERVER_UNREACHABLE , for 10 min/);
    assert.match(text, /timestamp has expired, .* expires in 2 d Roles of/);
    assert.match(
      textOf(firstScreen(summary({ repositories: [{ url: 'u', roles: [], releases: [] }] }), frame)),
      /never read/,
    );
  });

  it('show how two signed entries differ, and link to the current one', () => {
    const changes = [{ member: 'revision', before: hostileName, after: '' }];
    const html = releasePage(
      name,
      { ...report, signed: signedOf({ entry, against: 42, from: 43, changes }) },
      frame,
    );
    assert.ok(!html.includes('<script>alert'));
    assert.match(textOf(html), /withdrawn .* has signed 42/);
    assert.match(textOf(html), /From 43 to 42, compared with 42/);
    assert.ok(html.includes('href="/releases/dns-edge/stable/42"'));
    assert.match(
      textOf(releasePage(name, { ...report, signed: signedOf({}) }, frame)),
      /has not seen its signed entry/,
    );
    assert.match(
      textOf(releasePage(name, { ...report, signed: signedOf({ entry }) }, frame)),
      /has not seen another entry/,
    );
    assert.match(
      textOf(releasePage(name, { ...report, signed: [] }, frame)),
      /No repository that the server reads/,
    );
    assert.doesNotMatch(textOf(releasePage(name, report, frame)), /What was signed/);
  });

  it('show whether a host runs the signed release', () => {
    const active = { serial: 41, state: 'confirmed', sinceMs: nowMs } as const;
    const of = (signed: HeadVerdict) =>
      textOf(
        hostPage(
          hostDetail('web-1', { bundles: [{ bundle: 'dns-edge', channel: 'stable', active, signed }] }),
          frame,
        ),
      );
    assert.match(of({ standing: 'behind', serial: 42 }), /behind 42 is signed/);
    assert.match(of({ standing: 'withdrawn', serial: 40 }), /withdrawn 40 is signed/);
    assert.match(of({ standing: 'current', serial: 41 }), /current same/);
  });
});
