"""Audits on Ray: inputs of any size, audited by workers on one machine or a cluster (extra
``ray``).

    from masis.integrations.ray import RayAudit, audit_on_ray
    audit_on_ray(RayAudit("cases/", "audited/", Settings()))

Ray Data hands out the parts and starts the workers again that die; nothing here schedules anything.
The output is the lake of ``masis.datasets.lake``. docs/scale.md says what survives what.
"""

from masis.integrations.ray.job import RayAudit, Report, audit_on_ray
from masis.integrations.ray.ledger import Totals

__all__ = ["RayAudit", "Report", "Totals", "audit_on_ray"]
