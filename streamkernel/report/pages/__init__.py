"""Pages of HTML about models and factors: headline, cards, figures and tables of each kind."""
