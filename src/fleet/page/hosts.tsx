// The list of hosts: a filter that the address contains, a page of rows, and a link to CSV. The size of a page does not depend on
// the fleet. The next page begins after a key, so that enrolled and retired hosts do not move rows between pages.
import type { ComponentChildren, VNode } from 'preact';
import type { HostBundle, HostLine, HostsPage } from '../../core/fleet/answers.js';
import {
  condition,
  csvAddress,
  hostAddress,
  hostsAddress,
  hostsPageAddress,
  releaseAddress,
} from './addresses.js';
import { activeText, activeTone, livenessText, livenessTone, stateTone } from './host-status.js';
import { type Frame, renderPage } from './layout.js';
import { Badge, Table, UntrustedText } from './parts.js';
import { standingTones } from './signed.js';
import { ageText, counted, skewText } from './words.js';

export interface HostsFilter {
  /** The filter as the user typed it. */
  readonly where: string;
  readonly after?: string;
}

const quick = [
  ['all', []],
  ['refused', [condition('state', 'refused')]],
  ['rolled back', [condition('state', 'rolled-back')]],
  ['unconfirmed', [condition('state', 'unconfirmed')]],
  ['silent', [condition('state', 'silent')]],
  ['waiting', [condition('state', 'waiting')]],
  ['critical', [condition('state', 'critical')]],
  ['blocked', [condition('state', 'blocked')]],
  ['cloned', [condition('state', 'cloned')]],
] as const;

/** Labels in a row. The page of the host has all. */
const maxLabels = 4;

/**
 * @param asked the filter and the cursor in the address
 * @returns the page at `/hosts`
 */
export function hostsPage(asked: HostsFilter, { hosts, next }: HostsPage, frame: Frame): string {
  const { where, after } = asked;
  return renderPage({
    ...frame,
    title: where === '' ? 'Hosts' : `Hosts ${where}`,
    at: '/hosts',
    liveEveryMs: 5000,
    children: (
      <>
        <h1>Hosts</h1>
        <FilterForm where={where} />
        {hosts.length === 0 ? (
          <p>{where === '' ? 'No host has enrolled yet.' : 'No host matches.'}</p>
        ) : (
          <Rows hosts={hosts} atMs={frame.atMs} />
        )}
        <nav class="pages" aria-label="Pages of hosts">
          <span class="quiet">{counted(hosts.length, 'host')} on this page</span>
          {after === undefined ? null : <a href={hostsPageAddress(where)}>First page</a>}
          {next === undefined ? null : (
            <a href={hostsPageAddress(where, next)} rel="next">
              Next page
            </a>
          )}
          <a href={csvAddress(where)} download>
            CSV of all of them
          </a>
        </nav>
      </>
    ),
  });
}

/** @returns the page that explains why a filter is invalid, with the filter to correct */
export function refusedFilterPage(where: string, message: string, frame: Frame): string {
  return renderPage({
    ...frame,
    title: 'Hosts',
    at: '/hosts',
    children: (
      <>
        <h1>Hosts</h1>
        <FilterForm where={where} />
        <p class="warning" role="alert">
          <UntrustedText text={message} />
        </p>
      </>
    ),
  });
}

function FilterForm({ where }: { readonly where: string }): VNode {
  return (
    <search>
      <form class="filter" action="/hosts">
        <label for="where">Filter</label>
        <input id="where" name="where" value={where} maxLength={2000} spellcheck={false} autocomplete="off" />
        <button type="submit">Show</button>
        <p class="quiet">
          As <code>state=refused,bundle=dns-edge,label.site=fra</code>; all of it has to hold.
        </p>
      </form>
      <ul class="quick">
        {quick.map(([name, conditions]) => (
          <li>
            <a
              href={hostsAddress(conditions)}
              aria-current={where === conditions.join(',') ? 'true' : undefined}
            >
              {name}
            </a>
          </li>
        ))}
      </ul>
    </search>
  );
}

function Rows({ hosts, atMs }: { readonly hosts: readonly HostLine[]; readonly atMs: number }): VNode {
  return (
    <Table
      caption="Hosts"
      columns={['host', 'state', 'bundles', 'labels', 'heard', 'version']}
      rows={hosts.map((host) => rowOf(host, atMs))}
    />
  );
}

function rowOf(host: HostLine, atMs: number): ComponentChildren[] {
  const { key, health, presence, lastSeenMs, skewMs, version, root } = host;
  const skew = skewText(skewMs);
  return [
    <a href={hostAddress(key)}>
      <UntrustedText text={host.host} />
    </a>,
    <>
      <Badge tone={livenessTone(host)} text={livenessText(host)} />{' '}
      {health === '' || health === 'ok' ? null : <Badge tone={stateTone(health)} text={health} />}{' '}
      {host.cloned ? <Badge tone="critical" text="cloned" /> : null}{' '}
      {host.kind === 'opa' ? <Badge tone="quiet" text="OPA, unsigned" /> : null}
    </>,
    <ul class="plain">
      {host.bundles.map((bundle) => (
        <BundleState bundle={bundle} host={host} atMs={atMs} />
      ))}
    </ul>,
    <Labels labels={host.labels} />,
    <>
      <span class="nowrap">{presence === 'never' ? 'never' : `${ageText(atMs - lastSeenMs)} ago`}</span>
      {skew === undefined || presence === 'never' ? null : <div class="quiet nowrap">clock {skew}</div>}
    </>,
    <>
      {host.kind === 'opa' ? 'OPA ' : null}
      <UntrustedText text={version} />
      {root === 0 ? null : <div class="quiet nowrap">root v{root}</div>}
    </>,
  ];
}

function BundleState({
  bundle: { bundle, channel, active, offered, signed },
  host,
  atMs,
}: {
  readonly bundle: HostBundle;
  readonly host: HostLine;
  readonly atMs: number;
}): VNode {
  return (
    <li>
      <UntrustedText text={bundle} />{' '}
      {active === undefined ? (
        <span class="quiet">nothing active</span>
      ) : (
        <>
          <a href={releaseAddress({ bundle, channel, serial: active.serial })}>{active.serial}</a>{' '}
          <Badge tone={activeTone(active, host)} text={activeText(active, host, atMs)} />
          {signed === undefined || signed.standing === 'current' ? null : (
            <>
              {' '}
              <Badge tone={standingTones[signed.standing]} text={signed.standing} />
            </>
          )}
        </>
      )}
      {offered === undefined ? null : (
        <>
          {' '}
          <Badge tone={stateTone(offered.state)} text={`${offered.serial} ${offered.state}`} />{' '}
          <code>{offered.code}</code>
        </>
      )}
    </li>
  );
}

function Labels({ labels }: { readonly labels: HostLine['labels'] }): VNode {
  const all = Object.entries(labels);
  return (
    <>
      {all.slice(0, maxLabels).map(([name, value]) => (
        <a class="label" href={hostsAddress([condition(`label.${name}`, value)])}>
          <UntrustedText text={`${name}=${value}`} />
        </a>
      ))}
      {all.length <= maxLabels ? null : <span class="quiet">and {all.length - maxLabels} more</span>}
    </>
  );
}
