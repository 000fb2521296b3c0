// Trust on the first page: roles of the repositories that the server follows, and roles that hosts trust. The nearest expiry first.

import type { VNode } from 'preact';
import type { FleetSummary, RepositoryStatus } from '../../core/fleet/answers.js';
import { isNearEnd } from '../../core/fleet/fleet-summary.js';
import { grouped } from '../../core/text/grouped.js';
import { timeLeft } from '../../core/text/iso-time.js';
import { condition, hostsAddress } from './addresses.js';
import { Badge, Moment, Section, Table, UntrustedText } from './parts.js';
import { ageText, counted, leftText } from './words.js';

/**
 * Renders the section of trusted roles, roots and versions. Roles that hosts report are left out when a followed
 * repository has the same roles.
 */
export function Trust({ summary }: { readonly summary: FleetSummary }): VNode {
  const { keys, roots, versions, repositories = [], atMs } = summary;
  const newest = Math.max(0, ...roots.map(({ version }) => version));
  return (
    <Section id="trust" title="Trust">
      {repositories.map((one) => (
        <Repository repository={one} atMs={atMs} />
      ))}
      {isKnownAlready(summary) ? null : keys.length === 0 ? (
        <p class="quiet">No host has reported yet which roles it trusts.</p>
      ) : (
        <>
          {repositories.length === 0 ? null : (
            <p class="quiet">As reported by the most recently seen hosts:</p>
          )}
          <Table
            caption="Roles, as reported by the most recently seen hosts"
            columns={['role', { right: 'version' }, 'left', 'ends']}
            rows={keys.map(({ role, version, expiresAtMs }) => [
              role,
              String(version),
              <Badge tone={toneOf(role, expiresAtMs - atMs)} text={leftText(expiresAtMs, atMs)} />,
              <Moment atMs={expiresAtMs} />,
            ])}
          />
        </>
      )}
      {roots.length + versions.length === 0 ? null : (
        <Table
          caption="Roots and versions of Writ on hosts"
          columns={['on hosts', { right: 'hosts' }, 'which']}
          rows={[
            ...roots.map(({ version, digest, hosts }) => [
              `root v${version}`,
              <a href={hostsAddress([condition('root', version)])}>{grouped(hosts)}</a>,
              version < newest ? (
                <Badge tone="warning" text="older root" />
              ) : (
                <code>{digest.slice(0, 12)}</code>
              ),
            ]),
            ...versions.map(({ version, hosts }) => [
              `Writ ${version}`,
              <a href={hostsAddress([condition('version', version)])}>{grouped(hosts)}</a>,
              '',
            ]),
          ]}
        />
      )}
    </Section>
  );
}

/** @returns whether hosts report the same roles as the repositories, so that a second table is not needed */
function isKnownAlready({ keys, repositories = [] }: FleetSummary): boolean {
  const known = repositories.flatMap(({ roles }) => roles);
  const isSame = (one: (typeof keys)[number]): boolean =>
    known.some(
      ({ role, version, expiresAtMs }) =>
        role === one.role && version === one.version && expiresAtMs === one.expiresAtMs,
    );
  return keys.length > 0 && keys.every(isSame);
}

function toneOf(role: string, leftMs: number): 'ok' | 'warning' | 'critical' {
  if (leftMs <= 0) return 'critical';
  return isNearEnd(role, leftMs) ? 'warning' : 'ok';
}

interface Shown {
  readonly repository: RepositoryStatus;
  readonly atMs: number;
}

function Repository({ repository: { url, checkedAtMs, failing, roles, releases }, atMs }: Shown): VNode {
  const rows = roles.toSorted((a, b) => a.expiresAtMs - b.expiresAtMs);
  const near = rows.filter(({ role, expiresAtMs }) => isNearEnd(role, expiresAtMs - atMs));
  return (
    <article>
      <p>
        <UntrustedText text={url} />{' '}
        {checkedAtMs === undefined ? (
          <Badge tone="warning" text="never read" />
        ) : (
          <span class="quiet">
            read {ageText(atMs - checkedAtMs)} ago, {counted(releases.length, 'channel')}
          </span>
        )}
      </p>
      {failing === undefined ? null : (
        <p class="warning">
          It cannot be read: <code>{failing.code}</code>, for {ageText(atMs - failing.sinceMs)}. What was read
          before stays in force.
        </p>
      )}
      {near.length === 0 ? null : (
        <p class="warning">
          {near.map(({ role, expiresAtMs }, index) => (
            <>
              {index === 0 ? '' : ', '}
              <UntrustedText text={role} />{' '}
              {expiresAtMs <= atMs ? 'has expired' : `expires in ${timeLeft(expiresAtMs - atMs)}`}
            </>
          ))}
        </p>
      )}
      {rows.length === 0 ? null : (
        <Table
          caption={`Roles of ${url}, nearest expiry first`}
          columns={['role', { right: 'version' }, 'left', 'ends']}
          rows={rows.map(({ role, version, expiresAtMs }) => [
            <UntrustedText text={role} />,
            String(version),
            <Badge tone={toneOf(role, expiresAtMs - atMs)} text={leftText(expiresAtMs, atMs)} />,
            <Moment atMs={expiresAtMs} />,
          ])}
        />
      )}
    </article>
  );
}
