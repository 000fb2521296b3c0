// The webhook body (version 4) of Alertmanager's documentation as a schema without other members.
// https://prometheus.io/docs/alerting/latest/configuration/#webhook_config

const texts = { type: 'object', additionalProperties: { type: 'string' } };
const time = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z$' };
const status = { enum: ['firing', 'resolved'] };

function whole(properties: Readonly<Record<string, object>>): object {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

export const webhookSchema = whole({
  version: { const: '4' },
  groupKey: { type: 'string', minLength: 1 },
  truncatedAlerts: { type: 'integer', minimum: 0 },
  status,
  receiver: { type: 'string', minLength: 1 },
  groupLabels: texts,
  commonLabels: texts,
  commonAnnotations: texts,
  externalURL: { type: 'string', pattern: '^https?://' },
  alerts: {
    type: 'array',
    minItems: 1,
    items: whole({
      status,
      labels: { ...texts, required: ['alertname'] },
      annotations: texts,
      startsAt: time,
      endsAt: time,
      generatorURL: { type: 'string', pattern: '^https?://' },
      fingerprint: { type: 'string', pattern: '^[0-9a-f]{16}$' },
    }),
  },
});
