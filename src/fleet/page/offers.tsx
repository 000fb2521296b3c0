// Offered releases that are not active, grouped by bundle, serial and code: the refusals, the output that hosts reported, and the
// hint of the error catalogue.
import type { VNode } from 'preact';
import type { OfferGroup } from '../../core/fleet/answers.js';
import type { OfferedState } from '../../core/fleet/report.js';
import { knownError } from '../../core/known-error.js';
import { condition, hostsAddress, releaseAddress } from './addresses.js';
import { Badge, Moment, Section, type Tone, UntrustedText } from './parts.js';
import { counted } from './words.js';

const tones: Readonly<Record<OfferedState, Tone>> = {
  refused: 'critical',
  'rolled-back': 'critical',
  failed: 'warning',
  deferred: 'quiet',
};

/**
 * Renders the section of refused and deferred releases; a sentence when there are none.
 * A visitor with the role `view` also gets a note that the role `detail` shows the output of checks.
 */
export function OfferList({
  offers,
  id,
  role,
}: {
  readonly offers: readonly OfferGroup[];
  readonly id: string;
  /** Role of the visitor; undefined before the sign-in. */
  readonly role: string | undefined;
}): VNode {
  return (
    <Section id={id} title="Offered, but not active">
      {offers.length === 0 ? (
        <p class="quiet">No host refuses anything that it is offered now.</p>
      ) : (
        <ul class="cards">
          {offers.map((offer) => (
            <Offer offer={offer} />
          ))}
        </ul>
      )}
      {offers.length > 0 && role === 'view' ? (
        <p class="quiet">A token of the role detail also shows the first lines of what checks printed.</p>
      ) : null}
    </Section>
  );
}

function Offer({ offer }: { readonly offer: OfferGroup }): VNode {
  const { bundle, channel, serial, state, code, hosts, firstAtMs, lines = [] } = offer;
  const where = [
    ...[condition('bundle', bundle), condition('channel', channel), condition('state', state)],
    condition('code', code),
  ];
  const hint = knownError(code)?.hint;
  return (
    <li class={tones[state]}>
      <p>
        <Badge tone={tones[state]} text={state} />{' '}
        <a href={releaseAddress(offer)}>
          <UntrustedText text={bundle} /> {serial}
        </a>{' '}
        <span class="quiet">{channel}</span> <code>{code}</code> on{' '}
        <a href={hostsAddress(where)}>{counted(hosts, 'host')}</a>
        {firstAtMs === undefined ? null : (
          <span class="quiet">
            , first <Moment atMs={firstAtMs} />
          </span>
        )}
      </p>
      {lines.map((line) => (
        <p class="line">
          <UntrustedText text={line} />
        </p>
      ))}
      {hint === undefined ? null : <p class="quiet">Next: {hint}</p>}
    </li>
  );
}
