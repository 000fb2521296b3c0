// Page of one host: its last report in the terms of `writ status`, the outcomes of its cycles, and what the server recorded.
import type { ComponentChildren, VNode } from 'preact';
import type { HostBundle, HostDetail, OpaBundle } from '../../core/fleet/answers.js';
import type { FleetReport } from '../../core/fleet/report.js';
import { knownError } from '../../core/known-error.js';
import { printable } from '../../core/text/printable.js';
import { condition, hostAddress, hostHistoryCsvAddress, hostsAddress, releaseAddress } from './addresses.js';
import { History } from './history.js';
import { activeText, activeTone, hostHeadline, stateTone } from './host-status.js';
import { type Frame, renderPage } from './layout.js';
import { Badge, Moment, Section, Table, UntrustedText } from './parts.js';
import { StandingCell } from './signed.js';
import { ageText, leftText, skewText } from './words.js';

/** @returns the page at `/hosts/KEY` */
export function hostPage(host: HostDetail, frame: Frame): string {
  const { label, tone, sentence } = hostHeadline(host);
  return renderPage({
    ...frame,
    title: `${label} ${host.host}`,
    at: '/hosts',
    liveEveryMs: 5000,
    children: (
      <>
        <section class={`verdict ${tone}`} aria-label="State of the host">
          <h1>
            <UntrustedText text={host.host} />
          </h1>
          <p>
            <Badge tone={tone} text={label} /> {sentence}
          </p>
          <Alerts host={host} />
        </section>
        {host.opaBundles === undefined ? (
          <Bundles host={host} nowMs={frame.atMs} />
        ) : (
          <OpaBundles bundles={host.opaBundles} />
        )}
        {host.report === undefined ? null : <Report report={host.report} nowMs={frame.atMs} />}
        <History
          title="Releases that it ran or refused"
          intervals={host.intervals ?? []}
          subject="release"
          csv={hostHistoryCsvAddress(host.key)}
        />
        <Outcomes host={host} />
        <Identity host={host} nowMs={frame.atMs} />
      </>
    ),
  });
}

function Alerts({ host }: { readonly host: HostDetail }): VNode | null {
  const { key, state, cloned, namesakes, report } = host;
  const lines: ComponentChildren[] = [
    ...(report?.findings ?? []).map((code) => <Finding code={code} />),
    ...(state === 'waiting'
      ? [
          <>
            {'Approve: '}
            <code>{`writ fleet host approve ${key}`}</code>
          </>,
        ]
      : []),
    ...(cloned ? ['CLONED: two machines report under this key. Enrol one of them again.'] : []),
    ...namesakes.map((one) => (
      <>
        Another key has this name: <a href={hostAddress(one)}>{one.slice(0, 16)}</a>
      </>
    )),
  ];
  if (lines.length === 0) return null;
  return (
    <ul class="findings">
      {lines.map((line) => (
        <li>{line}</li>
      ))}
    </ul>
  );
}

function Finding({ code }: { readonly code: string }): VNode {
  const known = knownError(code);
  return (
    <>
      <code>{printable(code)}</code>
      {known === undefined ? null : ` ${known.meaning} Next: ${known.hint}`}
    </>
  );
}

function Bundles({ host, nowMs }: { readonly host: HostDetail; readonly nowMs: number }): VNode {
  const { bundles } = host;
  return (
    <Section id="bundles" title="Bundles">
      {bundles.length === 0 ? <p class="quiet">None.</p> : null}
      {bundles.length === 0 ? null : (
        <Table
          caption="Bundles of this host"
          columns={[
            'bundle',
            'channel',
            { right: 'serial' },
            'active since',
            'state',
            'bake time',
            'runs what it should',
            'server has',
          ]}
          rows={bundles.map((one) => rowOf(one, host, nowMs))}
        />
      )}
      {bundles.map(({ offered }) =>
        offered?.line === undefined ? null : (
          <p class="line">
            <code>{offered.code}</code> <UntrustedText text={offered.line} />
          </p>
        ),
      )}
    </Section>
  );
}

function OpaBundles({ bundles }: { readonly bundles: readonly OpaBundle[] }): VNode {
  return (
    <Section id="bundles" title="Bundles">
      {bundles.length === 0 ? (
        <p class="quiet">None.</p>
      ) : (
        <Table
          caption="Bundles in the last status of this OPA, which is not signed"
          columns={['bundle', 'active revision', 'error', 'message']}
          rows={bundles.map(({ name, revision, code, message }) => [
            <UntrustedText text={name} />,
            revision === undefined ? 'none' : <UntrustedText text={revision} />,
            code === undefined ? '-' : <UntrustedText text={code} />,
            message === undefined ? '' : <UntrustedText text={message} />,
          ])}
        />
      )}
    </Section>
  );
}

function rowOf(
  { bundle, channel, active, offered, signed }: HostBundle,
  host: HostDetail,
  nowMs: number,
): ComponentChildren[] {
  const link = (serial: number): VNode => <a href={releaseAddress({ bundle, channel, serial })}>{serial}</a>;
  return [
    <UntrustedText text={bundle} />,
    <UntrustedText text={channel} />,
    active === undefined ? '-' : link(active.serial),
    active === undefined ? '-' : <Moment atMs={active.sinceMs} />,
    active === undefined ? (
      '-'
    ) : (
      <Badge tone={activeTone(active, host)} text={activeText(active, host, nowMs)} />
    ),
    active?.bake ?? '-',
    <StandingCell signed={signed} />,
    offered === undefined ? (
      active === undefined ? (
        '-'
      ) : (
        'same'
      )
    ) : (
      <>
        {link(offered.serial)}, <Badge tone={stateTone(offered.state)} text={offered.state} />{' '}
        <code>{offered.code}</code> <Moment atMs={offered.atMs} />
      </>
    ),
  ];
}

function Report({ report, nowMs }: { readonly report: FleetReport; readonly nowMs: number }): VNode {
  const { groups, trust, freshness, root, bundles } = report;
  const outputs = bundles.flatMap(({ offered }) => (offered?.output === undefined ? [] : [offered.output]));
  return (
    <>
      {outputs.map((output) => (
        <section class="scroll" aria-label="Output of the check">
          <pre>
            <UntrustedText text={output} />
          </pre>
        </section>
      ))}
      {groups.length === 0 ? null : (
        <Section id="groups" title="Workers">
          <Table
            caption="Groups of workers"
            columns={['group', { right: 'workers' }, { right: 'confirmed' }, { right: 'must be' }]}
            rows={groups.map(({ group, workers, confirmed, min }) => [
              <UntrustedText text={group} />,
              String(workers),
              <span class={confirmed < workers ? 'warning' : undefined}>{confirmed}</span>,
              String(min),
            ])}
          />
        </Section>
      )}
      <Section id="freshness" title="Freshness and trust">
        <p>
          Freshness: <UntrustedText text={freshness} />
          {root === undefined ? null : (
            <>
              {', root v'}
              {root.version} <code>{root.sha256.slice(0, 12)}</code>
            </>
          )}
        </p>
        {trust.length === 0 ? null : (
          <Table
            caption="Roles that this host trusts"
            columns={['role', { right: 'version' }, 'left']}
            rows={trust.map(({ role, version, expiresAtMs }) => [
              <UntrustedText text={role} />,
              String(version),
              leftText(expiresAtMs, nowMs),
            ])}
          />
        )}
      </Section>
    </>
  );
}

function Outcomes({ host: { outcomes } }: { readonly host: HostDetail }): VNode {
  return (
    <Section id="history" title="Outcomes of its cycles">
      {outcomes.length === 0 ? (
        <p class="quiet">Nothing has changed or been refused since it enrolled.</p>
      ) : (
        <Table
          caption="Outcomes, newest first"
          columns={['when', 'outcome', 'releases', 'code', 'because of']}
          rows={outcomes.map(({ atMs, outcome, bundles = [], code, trigger }) => [
            <Moment atMs={atMs} />,
            <Badge tone={stateTone(outcome)} text={outcome} />,
            bundles.map((release, at) => (
              <>
                {at === 0 ? '' : ', '}
                <a href={releaseAddress(release)}>
                  <UntrustedText text={release.bundle} /> {release.serial}
                </a>
              </>
            )),
            code === undefined ? '' : <code>{code}</code>,
            <UntrustedText text={trigger} />,
          ])}
        />
      )}
    </Section>
  );
}

function Identity({ host, nowMs }: { readonly host: HostDetail; readonly nowMs: number }): VNode {
  const { key, kind, presence, lastSeenMs, everyMs, enrolledAtMs, skewMs, version, labels } = host;
  const lastReport =
    presence === 'never' ? 'never' : `${ageText(nowMs - lastSeenMs)} ago, every ${ageText(everyMs)}`;
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    ['key', <code>{key}</code>],
    ['heard', lastReport],
    ['clock', presence === 'never' ? '-' : (skewText(skewMs) ?? 'as the one of the server')],
    ['enrolled', <Moment atMs={enrolledAtMs} />],
    [kind === 'opa' ? 'OPA' : 'Writ', <UntrustedText text={version} />],
    ...Object.entries(labels).map(([name, value]): readonly [string, ComponentChildren] => [
      'label',
      <a href={hostsAddress([condition(`label.${name}`, value)])}>
        <UntrustedText text={`${name}=${value}`} />
      </a>,
    ]),
  ];
  return (
    <Section id="identity" title="Identity">
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
